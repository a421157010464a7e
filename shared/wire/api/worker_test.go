package api_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestDigestOfAnOutput(t *testing.T) {
	t.Parallel()
	good := "sha256:" + strings.Repeat("0f", 32)
	for digest, ok := range map[string]bool{
		good: true, "": true, strings.ToUpper(good): false, good[:70]: false, good + "0": false, "md5:" + good[7:]: false, good[7:]: false,
	} {
		report, err := api.Completion("t", contract.TaskCompleted{
			Outcome: contract.OutcomeSucceeded, Output: &contract.TaskOutput{OutputPath: "exports/t/o", Digest: digest},
		})
		switch f := fault.Of(err); {
		case ok && (err != nil || report.Upload.Digest != digest):
			t.Errorf("got %v for digest %q, want its report", err, digest)
		case !ok && (err == nil || f.Field != "output.digest"):
			t.Errorf("got %v for digest %q, want a refusal of output.digest", err, digest)
		}
	}
}
