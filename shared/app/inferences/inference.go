package inferences

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Inference serves clients of inference tasks. A task is a run of kind inference in a pool
// of an engine. A Dispatcher is its worker.
type Inference struct {
	*offers
	clock       clock.Clock
	log         *slog.Logger
	capacity    *capacity.Caches
	answers     *answer.Streams
	readers     *readers
	transcripts Transcripts
	prompts     Prompts
	record      series.Recorder
	config      Config
	// stopped reports whether the process stops.
	stopped func() bool
	// hex returns n random bytes in hexadecimal.
	hex func(n int) string
}

// New returns the use cases of inference tasks, whose streams are in feed. hex returns n random
// bytes in hexadecimal. record gets the samples that do not follow from commits.
func New(
	runs Runs, store Store, hex func(n int) string, feed port.AnswerFeed, models Catalog, transcripts Transcripts, prompts Prompts,
	record series.Recorder, config Config,
) *Inference {
	c, log, known := runs.Parts()
	config.MostWithin = cmp.Or(config.MostWithin, inference.MostWaited)
	return &Inference{
		offers: &offers{runs, store, models, known.Pools}, clock: c, log: log, capacity: known, answers: answer.NewStreams(feed, c, hex),
		readers: &readers{tasks: map[run.Ref]*readerCount{}}, transcripts: transcripts, prompts: prompts, record: record, config: config,
		stopped: func() bool { return false }, hex: hex,
	}
}

// offers knows which pools serve which models.
type offers struct {
	runs   Runs
	store  Store
	models Catalog
	pools  *capacity.Pools
}

func (s *Inference) now() time.Time { return clock.UTC(s.clock) }

func (s *Inference) warn(ctx context.Context, r run.Run, message string, err error) {
	s.log.LogAttrs(ctx, slog.LevelWarn, message, append(about.Run(&r), slog.String("error", err.Error()))...)
}

// Cancel requests the end of a task; see Runs.
func (s *Inference) Cancel(ctx context.Context, who port.Identity, taskID, reason string) (run.Run, error) {
	return s.runs.Cancel(ctx, who, taskID, reason)
}

// NewTask is a request for an inference task.
type NewTask struct {
	Identity port.Identity
	// Model is the id of a model; Engine names an engine, empty for any.
	Model, Engine string
	Workload      port.Workload
	SessionID     string
	Request       inference.Request
	// Strict requires a model of the catalog that a trusted key has signed.
	Strict bool
	// MaxTokens is the maximum number of tokens to generate; 0 is the rest of the context.
	// ExpectedTokens is the number that the client expects, for the admission only.
	MaxTokens, ExpectedTokens int
	// MaxTokensField is the field of the request that has MaxTokens; empty is max_tokens.
	MaxTokensField string
	// Within is the deadline, counted from now; 0 is the deadline of the pool. WithinField is the
	// field of the request that has it; empty is deadline_ms.
	Within         time.Duration
	WithinField    string
	Priority       spec.Priority
	SamplerProfile string
	// Labels are those of the run.
	Labels map[string]string
	// IdempotencyKey, Digest and the following are as in Submission.
	IdempotencyKey, Digest, CorrelationID, PayloadDigest, TraceParent string
	// Unstored: only the caller can read the answer, while it is generated.
	Unstored bool
	// waits: the caller waits for the answer, and needs no Accepted.Remaining.
	waits bool
	// stored is the JSON form of Request.
	stored inference.Stored
}

// Accepted is an accepted task.
type Accepted struct {
	Run run.Run
	// Existing: the idempotency key was known, and nothing was written.
	Existing bool
	// QueuePosition is the number of runs ahead of the task in the queue at its admission,
	// PredictedStart the expected time from then until it starts.
	QueuePosition  int
	PredictedStart time.Duration
	// Remaining is the result of Inference.Remaining; empty for Call, and if it could not be
	// read.
	Remaining budget.Limit
}

// CountRefusal counts a request for an inference task that is refused with a code, in Create or
// before it.
func (s *Inference) CountRefusal(ctx context.Context, code fault.Code, err error) {
	s.record(ctx, series.Count(series.TasksRejected, 1, strings.ToLower(string(code))))
	_, short := errors.AsType[*port.NoBudget](err)
	switch {
	case short && code != fault.Throttled:
		s.record(ctx, series.Count(series.Backpressure, 1, string(series.PolicyBudget)))
	case code == fault.AdmissionReject, code == fault.QueueFull, code == fault.Throttled:
		s.record(ctx, series.Count(series.Backpressure, 1, string(series.PolicyReject)))
	}
}

// createTask stores the run of a request, or returns the run of the key's first use, even if
// its model is no longer served.
func (s *Inference) createTask(ctx context.Context, in NewTask) (created run.Run, existing bool, err error) {
	r, err := s.runFor(ctx, in)
	if err != nil {
		var under *port.IdempotencyKey
		if in.IdempotencyKey != "" {
			under = &port.IdempotencyKey{Key: in.IdempotencyKey, Digest: in.Digest}
		}
		return s.runs.Refuse(ctx, in.Identity.Tenant, under, err)
	}
	if in.stored.Object == nil {
		return s.createIn(ctx, r, in.IdempotencyKey, in.Digest)
	}
	return s.createLarge(ctx, r, in)
}

// runFor returns the run of a request in the pool that serves its model.
func (s *Inference) runFor(ctx context.Context, in NewTask) (run.Run, error) {
	if err := in.Identity.NeedModel(in.Model); err != nil {
		return run.Run{}, err
	}
	if err := s.checkImages(ctx, in); err != nil {
		return run.Run{}, err
	}
	model, err := s.model(ctx, in)
	if err != nil {
		return run.Run{}, err
	}
	if len(model.Split) == 0 && len(model.Shadow) == 0 {
		return s.runOf(ctx, in, model)
	}
	r, err := s.splitRun(ctx, in, model)
	r.Shadow = shadowOf(r, model)
	return r, err
}

// runOf returns the run of a request in a pool that serves a model.
func (s *Inference) runOf(ctx context.Context, in NewTask, model catalog.Model) (run.Run, error) {
	pool, err := s.poolFor(ctx, in, model)
	if err != nil {
		return run.Run{}, err
	}
	if pool.Engine.Kind == platform.EngineMock {
		if err := checkMocked(in); err != nil {
			return run.Run{}, err
		}
	}
	if model, err = s.modelIn(ctx, in, pool, model); err != nil {
		return run.Run{}, err
	}
	return s.routedRun(ctx, in, model, pool)
}

// checkTask returns the fault of a request that no pool can serve.
func (s *Inference) checkTask(in NewTask) error {
	q := in.Request
	switch {
	case in.Model == "" || len(in.Model) > inference.Model:
		return fault.Invalid("model_ref", "want the id of a model, 1 to %d bytes", inference.Model)
	case q.Context < 0 || q.Context > catalog.MaxContextTokens:
		return invalidParams("ctx", "%d is out of range, want 0 to the context of the model in tokens, where 0 is what the engine has", q.Context)
	case in.MaxTokens < 0 || in.MaxTokens > inference.MaxTokens:
		return invalidParams("max_tokens", "%d is out of range, want 0 to %d, where 0 is what the context leaves", in.MaxTokens, inference.MaxTokens)
	case in.SessionID != "" && !limit.ValidModel(in.SessionID):
		return fault.Invalid("session_id", "malformed id %q, want 1 to 128 letters, digits, '.', '_', ':', '@' and '-', the first a letter or a digit", limit.Cut(in.SessionID, limit.FileName))
	case in.Engine != "" && !slices.Contains(platform.EngineKinds(), platform.EngineKind(in.Engine)):
		return fault.Invalid("engine", "unknown engine %.40q, want one of %v", in.Engine, platform.EngineKinds())
	case utf8.RuneCountInString(in.SamplerProfile) > inference.SamplerProfile:
		return fault.Invalid("sampler_profile_version", "%d characters, want at most %d", utf8.RuneCountInString(in.SamplerProfile), inference.SamplerProfile)
	case in.Priority != "" && !slices.Contains(spec.Priorities(), in.Priority):
		return fault.Invalid("priority", "unknown priority %.40q, want interactive, normal or batch", in.Priority)
	}
	for _, problem := range label.Check(in.Labels) {
		return fault.Invalid(label.Field(problem.Key), "%s", problem.Text)
	}
	if err := checkDeadline(in, s.longestDeadline(in), limitOf(in)); err != nil {
		return err
	}
	return q.Check(in.Workload)
}

func invalidParams(field, format string, args ...any) error {
	f := fault.New(fault.InvalidParams, format, args...)
	f.Field = field
	return f
}

// model returns the model of a request in the catalog. If the request does not require a
// signature, pools may serve a model that is not in the catalog. Such a model has the default
// price.
func (s *offers) model(ctx context.Context, in NewTask) (catalog.Model, error) {
	m, err := s.models.Admit(ctx, in.Identity.Tenant, in.Model, in.Strict)
	switch {
	case fault.Is(err, fault.ModelUnknown) && in.Strict:
		return m, fault.New(fault.UntrustedArtifact, "the model %.80q is not in the catalog, so that no trusted key has signed it", in.Model)
	case fault.Is(err, fault.ModelUnknown):
		return catalog.Model{Definition: catalog.Definition{Price: catalog.DefaultPrice()}}, nil
	case err != nil:
		return m, err
	case !slices.Contains(m.Workloads, in.Workload):
		return m, fault.Invalid("workload", "the model %s has no workload %s, want one of %v", m.ID, in.Workload, m.Workloads)
	}
	return m, nil
}

// Values that make a mock engine refuse a request, so that clients can test these faults.
const (
	mockedUnavailable = "pool-unavailable" // a model
	mockedInternal    = "cause-internal"   // a prompt
	mockedFull        = 1_000_000          // expected tokens
)

func checkMocked(in NewTask) error {
	switch {
	case in.Request.Prompt == mockedInternal:
		return fault.New(fault.Internal, "the prompt %s causes this error", mockedInternal)
	case in.ExpectedTokens >= mockedFull:
		return fault.New(fault.QueueFull, "no room in the queue for %d expected tokens; retry later", in.ExpectedTokens)
	}
	return nil
}

// poolFor returns the pool that serves a model. Of several pools, it prefers those with the
// context that the task needs, and of these the one with the fewest tasks for each of its
// slots.
func (s *offers) poolFor(ctx context.Context, in NewTask, model catalog.Model) (platform.Pool, error) {
	var found servingPools
	err := s.eachEngine(ctx, in.Identity.Tenant, func(p platform.Pool) error {
		found.add(p, in)
		return nil
	})
	if err != nil {
		return platform.Pool{}, err
	}
	if serving := found.best(); len(serving) > 0 {
		return s.leastUsed(ctx, s.longEnough(ctx, serving, model, max(in.Request.Context, in.Request.PromptTokens(), in.MaxTokens)))
	}
	return platform.Pool{}, found.refusal(in)
}

// leastUsed returns the pool with the fewest running and queued tasks for each of its slots,
// the first of equal ones. Queues are compared up to deepestQueue.
func (s *offers) leastUsed(ctx context.Context, of []platform.Pool) (platform.Pool, error) {
	if len(of) == 1 {
		return of[0], nil
	}
	best, least := of[0], math.Inf(1)
	for _, p := range of {
		holders, err := s.store.Holders(ctx, p.Tenant, p.ID, max(p.Limit, 1))
		if err != nil {
			return best, fmt.Errorf("cannot count the slots of pool %s: %w", p.ID, err)
		}
		queued, err := s.store.QueueLength(ctx, p.Tenant, p.ID, deepestQueue)
		if err != nil {
			return best, fmt.Errorf("cannot count the queue of pool %s: %w", p.ID, err)
		}
		if load := float64(len(holders)+queued) / float64(max(p.Limit, 1)); load < least {
			best, least = p, load
		}
	}
	return best, nil
}

// enginePage is the number of pools that are read at a time.
const enginePage = 100

// The limits of the policy of an inference task.
const (
	engineStart     = 30 * time.Second
	dispatcherBeat  = 10 * time.Second
	dispatcherDeath = 30 * time.Second
	engineAttempts  = 3
)

// newRun returns the run of a request in a pool where the model has a context of at most
// longest tokens. Fault: InvalidParams with the field.
func (s *Inference) newRun(in NewTask, model catalog.Model, pool platform.Pool, longest int) (run.Run, error) {
	context := cmp.Or(in.Request.Context, longest)
	if context > longest {
		return run.Run{}, invalidParams("ctx", "%d is out of range, the model %s has a context of %d tokens", context, in.Model, longest)
	}
	if in.Workload == port.WorkloadCompletion && in.MaxTokens > longest {
		return run.Run{}, invalidParams(cmp.Or(in.MaxTokensField, "max_tokens"), "%d is out of range, the model %s has a context of %d tokens", in.MaxTokens, in.Model, longest)
	}
	if err := checkEngine(pool.Engine.Kind, in.Request); err != nil {
		return run.Run{}, err
	}
	most, err := mostTokens(in, context)
	if err != nil {
		return run.Run{}, err
	}
	seconds := in.Within.Truncate(time.Second) + time.Second
	policy := s.config.Policy
	policy.StartTimeout, policy.TimeLimit, policy.QueueTimeout, policy.CancelGrace = engineStart, seconds, seconds, balance.SlotGrace
	policy.HeartbeatInterval, policy.HeartbeatTimeout = dispatcherBeat, dispatcherDeath
	policy.Retry.MaxAttempts, policy.Retry.MaxFurtherStarts, policy.Retry.Categories = engineAttempts, engineAttempts, nil
	r := run.Run{
		Tenant: in.Identity.Tenant, Workspace: in.Identity.Workspace, CorrelationID: in.CorrelationID,
		CreatedBy: in.Identity.Actor(), PayloadDigest: in.PayloadDigest, TraceParent: in.TraceParent, Labels: in.Labels,
		Work: spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{
			Model: in.Model, EngineModel: pool.Engine.ModelName(model.EngineModel), Engine: string(pool.Engine.Kind), Workload: string(in.Workload), SessionID: in.SessionID, Request: in.stored.Record,
			MaxTokens: most, OpenEnd: in.MaxTokens == 0, PromptTokens: in.Request.PromptTokens(), Within: in.Within, SamplerProfile: in.SamplerProfile, Unstored: in.Unstored, KeptFor: s.config.Answers.Of(in.Identity.Tenant, s.config.Policy.RecordRetention),
		}},
		Policy: policy, Priority: in.Priority, Trigger: run.TriggerRequest, Slot: platform.Slot{Pool: pool.ID},
	}
	r.Reservation = catalog.ForOffer(catalog.ForKey(model.Price.Reserve(r, s.config.Budgets), in.Identity, s.now()), pool, s.now())
	return r, nil
}

// mostTokens returns the maximum number of tokens of all answers of a request in a context. Fault:
// InvalidParams with the field.
func mostTokens(in NewTask, context int) (int, error) {
	answers, prompt, most := in.Request.Answers(), in.Request.LongestOf(), in.MaxTokens
	longest := in.Request.MostTokens()
	if most > longest {
		return 0, invalidParams(cmp.Or(in.MaxTokensField, "max_tokens"), "%d is out of range, want at most %d with %d answers and these logprobs", most, longest, answers)
	}
	if left := min(max(context-prompt, 1), longest); most == 0 || in.Request.Context > 0 {
		most = min(cmp.Or(most, left), left)
	}
	if in.Workload == port.WorkloadCompletion && prompt > context {
		return 0, invalidParams(port.FieldPrompt, "about %d tokens do not fit into a context of %d", prompt, context)
	}
	return most * answers, nil
}

// checkEngine returns the fault of a feature that an engine does not have, or of a seed that it
// would replace.
func checkEngine(kind platform.EngineKind, q inference.Request) error {
	least, most := kind.Seeds()
	if seed := q.Seed; seed != nil && (*seed < least || *seed > most-int64(max(q.Choices, 1))+1) {
		return invalidParams("seed", "%d is out of range, the engine %s has seeds from %d to %d", *seed, kind, least, most)
	}
	return q.CheckEngine(kind)
}
