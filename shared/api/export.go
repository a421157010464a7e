package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Export validates the body of POST /export/{format} and returns its submission
// without an identity, a key and a correlation id. It returns the faults
// NotFound, for an unknown format, and InvalidRequest, which names the field.
func Export(format string, request contract.ExportRequest) (orchestrator.Submission, error) {
	if !slices.Contains(limit.Formats(), format) {
		return orchestrator.Submission{}, fault.New(fault.NotFound, "unknown export format %q, want one of %s", format, strings.Join(limit.Formats(), ", "))
	}
	if !limit.ValidPI(request.PI) {
		return orchestrator.Submission{}, fault.Invalid("pi", "malformed PI, want a ULID: 26 characters of 0-9 and A-Z without I, L, O and U, the first at most 7")
	}
	batch := ""
	if request.BatchID != nil {
		batch = *request.BatchID
	}
	if request.BatchID != nil && !limit.ValidBatchID(batch) {
		return orchestrator.Submission{}, fault.Invalid("batch_id", "malformed batch id, want 1 to %d letters, digits, '.', '_', ':' and '-'", limit.BatchID)
	}
	options, err := optionsOf(request.Options)
	if err != nil {
		return orchestrator.Submission{}, err
	}
	work := run.Work{Kind: run.KindExport, Format: format, PI: request.PI, Options: options}
	return orchestrator.Submission{
		Work: work, BatchID: batch, Digest: digest(work, batch, request.Policy),
		Policy: func(defaults run.Policy) (run.Policy, error) { return policyFrom(defaults, request.Policy) },
	}, nil
}

// optionsOf validates the options and encodes them with their defaults, as the
// worker receives them.
func optionsOf(given *contract.ExportOptions) (json.RawMessage, error) {
	options := contract.ExportOptions{}
	if given != nil {
		options = *given
	}
	options = options.WithDefaults()
	if depth := *options.MaxDepth; depth < 0 || depth > limit.ExportDepth {
		return nil, fault.Invalid("options.maxDepth", "%d is out of range, want 0 (only the root) to %d", depth, limit.ExportDepth)
	}
	if size := *options.ParallelBatchSize; size < 1 || size > limit.ExportBatch {
		return nil, fault.Invalid("options.parallelBatchSize", "%d is out of range, want 1 to %d", size, limit.ExportBatch)
	}
	if modes := limit.CheimarrosModes(); !slices.Contains(modes, *options.CheimarrosMode) {
		return nil, fault.Invalid("options.cheimarrosMode", "unknown mode, want one of %s", strings.Join(modes, ", "))
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(options); err != nil {
		return nil, fmt.Errorf("cannot encode the options: %w", err)
	}
	return json.RawMessage(bytes.TrimSpace(text.Bytes())), nil
}

// digest identifies the content of a request independently of its JSON
// formatting.
func digest(work run.Work, batch string, given *contract.Policy) string {
	text := fmt.Appendf(nil, "%q %q %q %q", work.Format, work.PI, work.Options, batch)
	if given != nil {
		policy, _ := json.Marshal(given) //nolint:errchkjson // numbers and strings always have a JSON form
		text = fmt.Appendf(text, " %q", policy)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
