package orchestrator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// The limits of what a client may name.
const (
	batchIDLimit        = 128
	idempotencyKeyLimit = 255
)

var (
	// piPattern is the form of a PI: a ULID, 128 bits in Crockford's alphabet.
	piPattern = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	// plainPattern is what may stand in a batch id: it becomes an environment
	// variable and a log field.
	plainPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)
)

// Formats lists the formats that the worker can export to.
func Formats() []string { return []string{"mods", "dc", "marcxml"} }

// ExportCall is a request for an export.
type ExportCall struct {
	Identity       port.Identity
	Format         string
	Request        contract.ExportRequest
	IdempotencyKey string
	CorrelationID  string
}

// Export accepts a run. It returns after the commit; the execution is begun
// then, by this call or by the sweep. existing says that the idempotency key
// was known, and that nothing was written. Faults: NotFound for the format,
// InvalidRequest with the field, IdempotencyMismatch. It needs Executions
// beside Store.
func (s *Service) Export(ctx context.Context, call ExportCall) (r run.Run, existing bool, err error) {
	if !slices.Contains(Formats(), call.Format) {
		return r, false, fault.New(fault.NotFound, "there is no export format %q; there is: %s", call.Format, strings.Join(Formats(), ", "))
	}
	work, err := s.exportWork(call)
	if err != nil {
		return r, false, err
	}
	policy, err := policyOf(s.config.Policy, call.Request.Policy)
	if err != nil {
		return r, false, err
	}
	return s.create(ctx, run.Run{
		Tenant: call.Identity.Tenant, Workspace: call.Identity.Workspace,
		BatchID: call.Request.BatchID, CorrelationID: call.CorrelationID, Work: work, Policy: policy,
	}, call.IdempotencyKey, call.digest(work))
}

// create names and stores a new run, or finds the one that the key stands for.
// The digest says what is asked for.
func (s *Service) create(ctx context.Context, r run.Run, key, digest string) (created run.Run, existing bool, err error) {
	now := s.now()
	r.TaskID = fmt.Sprintf("%s_%s_%d_%s", r.Work.Kind, r.Work.Format, now.UnixMilli(), s.ports.Hex(4))
	r.ID = r.TaskID
	d := run.New(r, now)
	var under *port.IdempotencyKey
	if key != "" {
		under = &port.IdempotencyKey{Key: key, Digest: digest}
	}
	known, err := s.ports.Store.Create(ctx, port.WriteOf(d), under)
	switch {
	case errors.Is(err, port.ErrKeyTaken):
		return run.Run{}, false, fault.New(fault.IdempotencyMismatch, "this Idempotency-Key was used for another request; use a new key for a new request")
	case err != nil:
		return run.Run{}, false, fmt.Errorf("cannot store the run: %w", err)
	case known != nil:
		return *known, true, nil
	}
	d.Run.Version = 1
	s.committed(ctx, d)
	return d.Run, false, nil
}

// digest tells one request from another: what is asked for, whatever the
// spelling of its JSON.
func (c ExportCall) digest(work run.Work) string {
	text := fmt.Appendf(nil, "%q %q %q %q", work.Format, work.PI, work.Options, c.Request.BatchID)
	if c.Request.Policy != nil {
		// It is made of numbers and words, which always have a JSON.
		policy, _ := json.Marshal(c.Request.Policy) //nolint:errchkjson // see above
		text = fmt.Appendf(text, " %q", policy)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (s *Service) exportWork(call ExportCall) (run.Work, error) {
	request := call.Request
	if !piPattern.MatchString(request.PI) {
		return run.Work{}, fault.Invalid("pi", "malformed PI, want a ULID: 26 characters of 0-9 and A-Z without I, L, O and U, the first at most 7")
	}
	if len(request.BatchID) > batchIDLimit || request.BatchID != "" && !plainPattern.MatchString(request.BatchID) {
		return run.Work{}, fault.Invalid("batch_id", "a batch id is 1 to %d letters, digits, '.', '_', ':' and '-'", batchIDLimit)
	}
	if err := checkKey(call.IdempotencyKey); err != nil {
		return run.Work{}, err
	}
	options := contract.ExportOptions{}
	if request.Options != nil {
		options = *request.Options
	}
	options = options.WithDefaults()
	if depth := *options.MaxDepth; depth < 0 || depth > limit.ExportDepth {
		return run.Work{}, fault.Invalid("options.maxDepth", "the depth is 0 (the root alone) to %d", limit.ExportDepth)
	}
	if size := *options.ParallelBatchSize; size < 1 || size > limit.ExportBatch {
		return run.Work{}, fault.Invalid("options.parallelBatchSize", "the batch size is 1 to %d", limit.ExportBatch)
	}
	if !slices.Contains(contract.CheimarrosModes(), *options.CheimarrosMode) {
		return run.Work{}, fault.Invalid("options.cheimarrosMode", "the mode is one of %s", strings.Join(contract.CheimarrosModes(), ", "))
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(options); err != nil {
		return run.Work{}, fmt.Errorf("cannot write the options: %w", err)
	}
	return run.Work{
		Kind: "export", Format: call.Format, PI: request.PI,
		Options: json.RawMessage(bytes.TrimSpace(text.Bytes())), Image: s.config.Image,
	}, nil
}

func checkKey(key string) error {
	printable := func(c rune) bool { return c >= ' ' && c <= '~' }
	if len(key) > idempotencyKeyLimit || strings.ContainsFunc(key, func(c rune) bool { return !printable(c) }) {
		return fault.Invalid("Idempotency-Key", "a key is 1 to %d printable ASCII characters", idempotencyKeyLimit)
	}
	return nil
}
