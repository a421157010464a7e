package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

// Spec specifies the program to run. It is sent to the supervisor through a pipe, because Env
// contains secrets.
type Spec struct {
	// Dir is the machine's directory, which exists. Start is the number of this
	// start, from 1.
	Dir   string `json:"dir"`
	Start int    `json:"start"`
	// Argv is the absolute path of the program and its arguments.
	Argv []string `json:"argv"`
	// Env is the program's whole environment.
	Env []string `json:"env"`
	// Mark is an entry of Env that no other machine has; empty for none.
	Mark proctree.Mark `json:"mark,omitempty"`
	// Wrapper makes the supervisor run the program like sortie-exec; nil runs only the program.
	Wrapper *Wrapper `json:"wrapper,omitempty"`
	// Cwd is the program's working directory.
	Cwd string `json:"cwd"`
	// Parent is the process that starts the supervisor, set by Launch. Without it
	// the program is not started.
	Parent int `json:"parent"`
	// Protocol is the number of the format of this type, set by Launch. The executable of the
	// supervisor may have been replaced since the server started.
	Protocol int `json:"protocol"`
	// OutputLimit is the largest stored output in bytes; 0 means
	// output.DefaultLimit.
	OutputLimit int `json:"outputLimit,omitempty"`
}

// Wrapper configures a supervisor that is also the wrapper of its program.
type Wrapper struct {
	// Flags are the flags of sortie-exec.
	Flags []string `json:"flags,omitempty"`
	// Env is the environment of the supervisor. It contains no variable of a job.
	Env []string `json:"env,omitempty"`
}

// Exit is the exit status of a program.
type Exit struct {
	Start int `json:"start"`
	// Code is the exit code, 128+n for signal n; 126 or 127 if the program could not be
	// started.
	Code int `json:"code"`
	// Signal is the signal's number; 0 if no signal ended the program.
	Signal int `json:"signal,omitempty"`
	// Problem is why the program could not be started, or that its end was not observed.
	Problem string    `json:"problem,omitempty"`
	At      time.Time `json:"at"`
}

// start is the record of a start. It is written without a program first, then
// with it.
type start struct {
	Start int `json:"start"`
	// Program is the process that receives signals: the program, or the supervisor that is its
	// wrapper.
	Program *process  `json:"program,omitempty"`
	Session int       `json:"session"`
	At      time.Time `json:"at"`
	// Mark is the mark of the Spec. Group is the folder of the program's cgroup; empty without
	// one.
	Mark  proctree.Mark `json:"mark,omitempty"`
	Group string        `json:"group,omitempty"`
}

// process identifies a process. A number is reused, but not a number with a birth.
type process struct {
	PID  int    `json:"pid"`
	Born string `json:"born"`
}

// wrapped reports whether the supervisor is the wrapper of its program.
func (s start) wrapped() bool { return s.Program != nil && s.Program.PID == s.Session }

const (
	lockFile  = "lock"
	startFile = "start.json"
	exitFile  = "exit.json"
)

func readStart(dir string) (start, error) {
	var s start
	err := durable.Read(filepath.Join(dir, startFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return start{}, nil
	}
	if err != nil {
		return start{}, fmt.Errorf("cannot read how the program started: %w", err)
	}
	return s, nil
}

// readExit returns the record of this start's end. It returns false before the end is recorded.
func readExit(dir string, number int) (Exit, bool, error) {
	var e Exit
	err := durable.Read(filepath.Join(dir, exitFile), &e)
	if errors.Is(err, fs.ErrNotExist) {
		return Exit{}, false, nil
	}
	if err != nil {
		return Exit{}, false, fmt.Errorf("cannot read how the program ended: %w", err)
	}
	return e, e.Start == number, nil
}
