//go:build unix

package runners

import "github.com/sortie-dev/sortie/shared/wire/contract"

// End is the expected result of a run.
type End struct {
	// Exit is the exit code of "sortie run".
	Exit int
	// State is the state of the run, and Code the code of its fault; empty means no fault.
	State, Code string
	// Message is a part of the fault's message.
	Message string
	Attempt int
	// Program is the exit of the program. It is nil if the program never ran or was stopped
	// from outside.
	Program *contract.Exit
	// Stdout and Stderr are the program's streams in the last attempt.
	Stdout, Stderr string
	// Said, unless empty, is a part of standard error. It is used in place of Stderr if the text
	// has names of the platform.
	Said string
	// Output is the content of the output file.
	Output string
	// Cut means that the log exceeds the stored size, so that its middle is missing.
	Cut bool
}

// Case is a job file and its result.
type Case struct {
	// Job is the name of the file in jobs, without its extension.
	Job string
	// Cancel requests the cancellation, like Ctrl-C, when the program has begun.
	Cancel bool
	End
}

// The exit codes of the command line.
const (
	succeeded = 0
	failed    = 1
	cancelled = 7
)

// Cases returns all job files with their results.
func Cases() []Case {
	return []Case{
		{Job: "success", End: End{State: "Completed", Attempt: 1, Program: &contract.Exit{}, Stdout: "hello\n", Stderr: "careful\n", Output: "result"}},
		{Job: "input", End: End{State: "Completed", Attempt: 1, Program: &contract.Exit{}, Stdout: "LEVEL=info $HOME $(LEVEL) $$\nEMPTY=\nfirst\nsecond\n"}},
		{Job: "large-log", End: End{State: "Completed", Attempt: 1, Program: &contract.Exit{}, Cut: true}},
		{Job: "retry", End: End{State: "Completed", Attempt: 2, Program: &contract.Exit{}, Stdout: "SORTIE_ATTEMPT=2\nhello\n"}},
		{Job: "exit-code", End: End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Message: "no such table", Attempt: 1,
			Program: &contract.Exit{Code: 3}, Stdout: "hello\n", Stderr: "no such table\n",
		}},
		{Job: "killed", End: End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Attempt: 1,
			Program: &contract.Exit{Code: 137, Signal: 9}, Stdout: "hello\n",
		}},
		// sortie-exec sees that the kernel killed the program, but not why.
		{Job: "out-of-memory", End: End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Attempt: 1, Program: &contract.Exit{Code: 137, Signal: 9}, Stdout: "hello\n",
		}},
		{Job: "time-limit", End: End{
			Exit: failed, State: "Failed", Code: "RUN_TIMEOUT", Attempt: 1, Program: &contract.Exit{Code: 143, Signal: 15}, Stdout: "begun\n",
		}},
		{Job: "cancel-obeyed", Cancel: true, End: End{Exit: cancelled, State: "Cancelled", Code: "CANCELLED", Attempt: 1, Program: &contract.Exit{}, Stdout: "begun\nstopping\n"}},
		{Job: "cancel-ignored", Cancel: true, End: End{
			Exit: cancelled, State: "Cancelled", Code: "CANCELLED", Attempt: 1, Program: &contract.Exit{Code: 137, Signal: 9}, Stdout: "begun\n",
		}},
		{Job: "cancel-timeout", Cancel: true, End: End{
			Exit: failed, State: "Failed", Code: "CANCEL_TIMEOUT", Attempt: 1, Program: &contract.Exit{Code: 137, Signal: 9}, Stdout: "begun\n",
		}},
		// Processes that the program has started end with it, or with its wrapper.
		{Job: "daemons", End: End{State: "Completed", Attempt: 1, Program: &contract.Exit{}, Stdout: "hello\n"}},
		{Job: "daemons-failed", End: End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Attempt: 1, Program: &contract.Exit{Code: 3}, Stdout: "hello\n",
		}},
		{Job: "daemons-cancelled", Cancel: true, End: End{Exit: cancelled, State: "Cancelled", Code: "CANCELLED", Attempt: 1, Program: &contract.Exit{}, Stdout: "begun\nstopping\n"}},
		{Job: "daemons-orphaned", End: End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Attempt: 1, Program: &contract.Exit{Code: 137, Signal: 9},
		}},
		{Job: "missing-image", End: End{Exit: failed, State: "Failed", Code: "IMAGE", Attempt: 1}},
		{Job: "missing-program", End: End{Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Attempt: 1, Program: &contract.Exit{Code: 127}, Said: "no such file or directory"}},
	}
}

// WithoutWrapper returns the differences of images without sortie-exec, on runners that do not
// add it.
func WithoutWrapper() map[string]Difference {
	const needs = "sortie-exec gives the program its attempt, its input and its output file, and separates its streams"
	return map[string]Difference{
		"success": {Reason: needs},
		"input":   {Reason: needs},
		"retry":   {Reason: needs},
		"exit-code": {Reason: "the streams are one in the log of the platform, and the message has no line of them", End: &End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Message: "exited with code 3", Attempt: 1,
			Program: &contract.Exit{Code: 3}, Stdout: "hello\nno such table\n",
		}},
		"time-limit": {Reason: "no worker reports how the program ended after Sortie has ended the attempt", End: &End{
			Exit: failed, State: "Failed", Code: "RUN_TIMEOUT", Attempt: 1, Stdout: "begun\n",
		}},
		"killed": {Reason: "the platforms do not distinguish a signal from an exit code over 128", End: &End{
			Exit: failed, State: "Failed", Code: "PROGRAM_EXIT", Attempt: 1, Program: &contract.Exit{Code: 137}, Stdout: "hello\n",
		}},
		"daemons-orphaned": {Reason: "without sortie-exec there is no wrapper to kill"},
		"cancel-ignored": {Reason: "no sortie-exec ends the program within the grace; the platform kills it after", End: &End{
			Exit: failed, State: "Failed", Code: "CANCEL_TIMEOUT", Attempt: 1, Program: &contract.Exit{Code: 137, Signal: 9}, Stdout: "begun\n",
		}},
	}
}
