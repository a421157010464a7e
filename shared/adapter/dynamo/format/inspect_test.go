package format_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
)

func TestSecretsOfWebhooksAreRedacted(t *testing.T) {
	t.Parallel()
	for _, item := range []string{
		`{"pk": {"S": "acme#webhook#1"}, "secrets": {"S": "{\"secrets\":[{\"text\":\"whsec_hidden\"}]}"}}`,
		`{"pk": {"S": "acme#webhook#1"}, "secrets": {"B": "d2hzZWNfaGlkZGVu"}}`,
	} {
		shown, err := format.Inspect([]byte(item))
		if err != nil || shown["secrets"] != "redacted" || shown["pk"] != "acme#webhook#1" {
			t.Errorf("got %v (%v), want redacted secrets", shown, err)
		}
	}
}
