package spec

import (
	"maps"
	"slices"
)

// Kinds of work.
const (
	KindExport    = "export"
	KindJob       = "job"
	KindInference = "inference"
)

// KindProgram is no kind of work: in a filter, it selects the runs of KindJob without a stored
// job.
const KindProgram = "program"

// FilterKinds returns the kinds that a filter can have.
func FilterKinds() []string { return []string{KindExport, KindJob, KindProgram, KindInference} }

// Program is the work of a run of kind job.
type Program struct {
	// Command lists the arguments of the image's program.
	Command []string            `json:"command,omitempty"`
	Env     map[string]Variable `json:"env,omitempty"`
	// Input is the program's standard input; nil means that it is empty.
	Input *Input `json:"input,omitempty"`
	// Output is the file that the program writes; nil without an output.
	Output     *ProgramOutput `json:"output,omitempty"`
	Completion Completion     `json:"completion"`
	ExitCodes  ExitCodes      `json:"exitCodes,omitzero"`
	// DropLogs: the program's output is not stored.
	DropLogs bool `json:"dropLogs,omitempty"`
}

// With returns a copy of the program with additional environment variables; nil if p is nil.
func (p *Program) With(env map[string]string) *Program {
	if p == nil {
		return nil
	}
	changed := *p
	if len(env) > 0 {
		changed.Env = maps.Clone(changed.Env)
		if changed.Env == nil {
			changed.Env = map[string]Variable{}
		}
		for name, value := range env {
			changed.Env[name] = Variable{Value: value}
		}
	}
	return &changed
}

// Variable is an environment variable: a value, or the name of a secret. At most one is set;
// both are empty for an empty value.
type Variable struct {
	Value     string `json:"value,omitempty"`
	SecretRef string `json:"secretRef,omitempty"`
}

// StoredInput returns the standard input of a program, or the request of an inference run that is
// an object; nil without one.
func (w Work) StoredInput() *Input {
	switch {
	case w.Program != nil:
		return w.Program.Input
	case w.Inference != nil:
		return w.Inference.Input
	}
	return nil
}

// WithInput returns the work with another StoredInput. Work of other kinds is unchanged.
func (w Work) WithInput(input *Input) Work {
	switch {
	case w.Program != nil:
		program := *w.Program
		program.Input, w.Program = input, &program
	case w.Inference != nil:
		inference := *w.Inference
		inference.Input, w.Inference = input, &inference
	}
	return w
}

// Input is a standard input: a stored object, or the text of a job, which each launch stores. It is
// also the request of an inference run that is too large for its record.
type Input struct {
	// Key is the key of the stored object; empty for a text.
	Key  string `json:"key,omitempty"`
	Text string `json:"text,omitempty"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Deleted: the bytes were deleted at the end of the record's retention.
	Deleted bool `json:"deleted,omitempty"`
}

// ProgramOutput is the file that a program writes.
type ProgramOutput struct {
	// Path is relative to the program's working directory, or absolute.
	Path        string `json:"path"`
	FileName    string `json:"fileName"`
	ContentType string `json:"contentType,omitempty"`
}

// Completion says how the end of an attempt is decided.
type Completion string

// The two completions. With both, a report of the worker contract ends the attempt.
const (
	CompletionExit     Completion = "exit"     // the program's exit code decides
	CompletionCallback Completion = "callback" // the worker must report
)

// ExitCodes maps exit codes to outcomes. 0 is a success unless it is listed. Other codes that
// are not listed are failures, retried within the budget unless Retry lists codes.
type ExitCodes struct {
	Success []int `json:"success,omitempty"`
	Retry   []int `json:"retry,omitempty"`
	Fail    []int `json:"fail,omitempty"` // failures that are not retried
}

// Successes returns the codes that mean success: the listed ones, and 0 unless it is
// listed as a failure.
func (c ExitCodes) Successes() []int {
	if slices.Contains(slices.Concat(c.Success, c.Retry, c.Fail), 0) {
		return c.Success
	}
	return append([]int{0}, c.Success...)
}

// Succeeds reports whether the code is a success.
func (c ExitCodes) Succeeds(code int) bool { return slices.Contains(c.Successes(), code) }

// Retries reports whether Retry lists the code: the failure is then retried unless the policy
// excludes its category.
func (c ExitCodes) Retries(code int) bool { return slices.Contains(c.Retry, code) }

// Final reports whether a failure with the code is not retried: Fail lists it, or Retry lists
// only other codes.
func (c ExitCodes) Final(code int) bool {
	return slices.Contains(c.Fail, code) || len(c.Retry) > 0 && !c.Retries(code)
}
