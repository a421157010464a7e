package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/domain/trace"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Environment returns the environment variables of a machine: those of the export contract or
// of a job's program, and the TASK_ENVELOPE of the worker contract. The result contains secrets
// and must not be logged.
func Environment(a runs.Assignment) (map[string]string, error) {
	envelope, err := json.Marshal(envelope(a))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the task's envelope: %w", err)
	}
	env := exportVariables(a)
	if a.Run.Work.Program != nil {
		env = jobVariables(a)
		if err := addUpstream(env, a); err != nil {
			return nil, err
		}
	}
	addBucket(env, a.Bucket)
	env["TASK_ID"], env[contract.EnvelopeVariable] = a.Run.TaskID, string(envelope)
	env[contract.TraceParentVariable] = trace.OfAttempt(a.Run).String()
	return env, nil
}

func exportVariables(a runs.Assignment) map[string]string {
	env := map[string]string{
		"BATCH_ID": batchOf(a.Run), "PI": a.Run.Work.PI, "EXPORT_FORMAT": a.Run.Work.Format,
		"EXPORT_OPTIONS": string(a.Run.Work.Options), "CALLBACK_URL": a.CallbackURL, "SOURCE_API_URL": a.SourceURL,
	}
	return env
}

// addBucket adds the variables of a bucket. It adds nothing for a zero bucket.
func addBucket(env map[string]string, b grants.WorkerBucket) {
	if b.AccessKeyID != "" {
		env["R2_ACCOUNT_ID"], env["R2_BUCKET"] = b.AccountID, b.Bucket
		env["R2_ACCESS_KEY_ID"], env["R2_SECRET_ACCESS_KEY"] = b.AccessKeyID, b.SecretAccessKey
	}
	if b.Endpoint != "" {
		env["R2_ENDPOINT"] = b.Endpoint
	}
	if b.Endpoint != "" && b.Region != "" && b.Region != limit.R2Region {
		env["R2_REGION"] = b.Region
	}
}

// jobVariables returns the environment of a job's program. A program that must report also gets
// CALLBACK_URL of the export contract.
func jobVariables(a runs.Assignment) map[string]string {
	env := maps.Clone(a.Variables)
	if env == nil {
		env = map[string]string{}
	}
	env[contract.CompletionVariable] = string(cmp.Or(a.Run.Work.Program.Completion, spec.CompletionExit))
	if a.Run.Work.Program.Completion == spec.CompletionCallback {
		env["CALLBACK_URL"] = a.CallbackURL
	}
	if at := scheduledOf(a.Run); !at.IsZero() {
		env[contract.ScheduledVariable] = at.Format(time.RFC3339)
	}
	for name, v := range a.Run.Inputs {
		env[contract.InputPrefix+name] = v.Text()
	}
	if len(a.Run.Inputs) > 0 {
		text, _ := json.Marshal(a.Run.Inputs) //nolint:errchkjson // a map of JSON values
		env[contract.InputsVariable] = string(text)
	}
	if a.Run.Event != nil {
		env[contract.EventVariable] = string(a.Run.Event.Document)
	}
	addItem(env, a.Run)
	addParent(env, a)
	return env
}

// addItem adds the variables of a child.
func addItem(env map[string]string, r run.Run) {
	if r.Child == nil {
		return
	}
	item := r.Child.Item
	env[contract.ItemVariable], env[contract.ItemIndexVariable] = item.Text, strconv.Itoa(item.Index)
	for name, value := range item.Matrix {
		env[contract.MatrixPrefix+name] = value
	}
}

// addUpstream adds the variable about the runs that a run came after, if any.
func addUpstream(env map[string]string, a runs.Assignment) error {
	g := a.Run.Graph
	if g == nil || len(g.Upstream) == 0 {
		return nil
	}
	text, err := json.Marshal(upstreamOf(g.Upstream, a.UpstreamURLs))
	if err != nil {
		return fmt.Errorf("cannot encode the upstream runs: %w", err)
	}
	if a.StoreUpstream == nil {
		env[contract.UpstreamVariable] = string(text)
		return nil
	}
	env[contract.UpstreamURLVariable], err = a.StoreUpstream(text)
	return err
}

// upstreamOf returns the runs that a run came after, by job.
func upstreamOf(runs []run.Parent, urls map[string]string) map[string]contract.UpstreamRun {
	found := make(map[string]contract.UpstreamRun, len(runs))
	for _, u := range runs {
		shown := contract.UpstreamRun{RunID: u.RunID, State: string(u.State), Skipped: u.Skipped, Result: u.Result}
		if o := u.Output; o != nil {
			shown.Output = &contract.UpstreamOutput{URL: urls[u.JobID], FileName: o.FileName, Size: o.Size, Digest: o.Digest}
		}
		found[u.JobID] = shown
	}
	return found
}

// addParent adds the variables about the run that triggered this one, if any.
func addParent(env map[string]string, a runs.Assignment) {
	p := a.Run.Parent
	if p == nil {
		return
	}
	env[contract.ParentRunVariable], env[contract.ParentJobVariable], env[contract.ParentStateVariable] = p.RunID, p.JobID, string(p.State)
	if p.Output == nil {
		return
	}
	env[contract.ParentOutputURLVariable], env[contract.ParentOutputNameVariable] = a.ParentOutputURL, p.Output.FileName
	env[contract.ParentOutputSizeVariable] = strconv.FormatInt(p.Output.Size, 10)
	if p.Output.Digest != "" {
		env[contract.ParentOutputDigestVariable] = p.Output.Digest
	}
}

// programOf returns the description of a job's program for the envelope; nil without a program.
func programOf(a runs.Assignment) *contract.EnvelopeProgram {
	p := a.Run.Work.Program
	if p == nil {
		return nil
	}
	program := &contract.EnvelopeProgram{SuccessCodes: p.ExitCodes.Successes()}
	if p.Input != nil && a.InputURL != "" {
		program.Input = &contract.Download{URL: a.InputURL, Size: p.Input.Size, ExpiresAt: a.Grant.ExpiresAt}
	}
	program.Output = programOutput(p.Output)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if p.Env[name].SecretRef != "" {
			program.SecretVariables = append(program.SecretVariables, name)
		}
	}
	return program
}

// programOutput returns the wire form of a program's output; nil for nil.
func programOutput(o *spec.ProgramOutput) *contract.ProgramOutput {
	if o == nil {
		return nil
	}
	return &contract.ProgramOutput{Path: o.Path, FileName: o.FileName, ContentType: o.ContentType}
}

// inputsOf returns the wire form of the inputs of a run.
func inputsOf(r run.Run) map[string]json.RawMessage {
	if len(r.Inputs) == 0 {
		return nil
	}
	values := make(map[string]json.RawMessage, len(r.Inputs))
	for name, v := range r.Inputs {
		values[name] = json.RawMessage(v)
	}
	return values
}

// Inputs returns the values of inputs in a request.
func Inputs(values map[string]json.RawMessage) map[string]spec.Value {
	if values == nil {
		return nil
	}
	inputs := make(map[string]spec.Value, len(values))
	for name, v := range values {
		inputs[name] = spec.Value(v)
	}
	return inputs
}

// scheduledOf returns the scheduled time in the envelope; zero for a run without a job.
func scheduledOf(r run.Run) time.Time {
	if r.JobID == "" {
		return time.Time{}
	}
	return r.Scheduled()
}

func envelope(a runs.Assignment) contract.TaskEnvelope {
	r := a.Run
	renewal := Renewal(&a.Grant)
	key := r.Work.Kind + "/" + r.Work.Format
	if r.Work.Program != nil {
		key = r.Work.Kind
		if r.JobID != "" {
			key += "/" + r.JobID
		}
	}
	return contract.TaskEnvelope{
		TaskID: r.TaskID, RunID: r.ID, AssetID: r.Work.PI, TaskKey: key,
		TenantID: r.Tenant, WorkspaceID: r.Workspace, CorrelationID: r.CorrelationID, TraceParent: trace.OfAttempt(r).String(), Attempt: r.Attempt.Number,
		Resources: contract.Resources{
			CPUMillicores: int64(a.CPUs) * 1000, MemoryBytes: int64(a.MemoryMB) << 20,
			TimeoutMS: r.Policy.TimeLimit.Milliseconds(),
		},
		ScheduledAt: scheduledOf(r), Inputs: inputsOf(r),
		EnqueuedAt: r.CreatedAt, Deadline: r.Deadline(), CallbackBaseURL: a.PublicURL,
		TaskToken: renewal.TaskToken, TokenExpiresAt: renewal.TokenExpiresAt,
		HeartbeatIntervalMS: r.Policy.HeartbeatInterval.Milliseconds(),
		HeartbeatTimeoutMS:  r.Policy.HeartbeatTimeout.Milliseconds(),
		CancelGracePeriodMS: r.Policy.CancelGrace.Milliseconds(),
		Output:              renewal.Output, Log: renewal.Log, Program: programOf(a),
	}
}

// Renewal returns the wire form of a renewal; empty for nil.
func Renewal(g *grants.Grant) contract.TokenRenewal {
	if g == nil {
		return contract.TokenRenewal{}
	}
	upload := func(u grants.UploadURL) *contract.Upload {
		return &contract.Upload{URL: u.URL, Key: u.Key, ExpiresAt: g.ExpiresAt}
	}
	return contract.TokenRenewal{TaskToken: g.Token, TokenExpiresAt: g.ExpiresAt, Output: upload(g.Output), Log: upload(g.Log)}
}
