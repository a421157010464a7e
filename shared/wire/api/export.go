package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Export validates the body of POST /export/{format} and returns its submission, without
// identity, key and correlation id. The fault is NotFound for an unknown format, or
// InvalidRequest with the field.
func Export(format string, request contract.ExportRequest) (runs.Submission, error) {
	export := job.Export{Format: format, PI: request.PI, Options: (*job.ExportOptions)(request.Options)}
	if problems := export.Validate(); len(problems) > 0 {
		code := fault.InvalidRequest
		if problems[0].Field == "format" {
			code = fault.NotFound
		}
		f := fault.New(code, "%s", problems[0].Problem)
		f.Field = problems[0].Field
		return runs.Submission{}, f
	}
	batch := ""
	if request.BatchID != nil {
		batch = *request.BatchID
	}
	if request.BatchID != nil && !limit.ValidBatchID(batch) {
		return runs.Submission{}, fault.Invalid("batch_id", "malformed batch id, want 1 to %d letters, digits, '.', '_', ':' and '-'", limit.BatchID)
	}
	work := export.Work()
	return runs.Submission{
		Work: work, BatchID: batch, Digest: digest(work, batch, request.Policy, request.Webhook),
		Policy: func(defaults spec.Policy) (spec.Policy, error) { return policyFrom(defaults, request.Policy) },
	}, nil
}

// digest identifies the content of a request, independently of its JSON formatting.
func digest(work spec.Work, batch string, given *contract.Policy, hook *contract.ExportWebhook) string {
	text := fmt.Appendf(nil, "%q %q %q %q", work.Format, work.PI, work.Options, batch)
	if given != nil {
		policy, _ := json.Marshal(given) //nolint:errchkjson // numbers and strings always have a JSON form
		text = fmt.Appendf(text, " %q", policy)
	}
	if hook != nil {
		text = fmt.Appendf(text, " webhook %q %q", hook.URL, hook.EventTypes)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
