package stacktest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Play is a worker that knows nothing but its environment, and does what its
// words say, one after the other; it gives the exit code.
//
//	success      calls back a success without an output
//	error        calls back an error
//	wait:FILE    waits until somebody writes to the named pipe
//	once:FILE    makes the file; where it was there already, goes on with the
//	             next word but one
//	exit:N       exits with the code
//	deaf         ignores SIGTERM
//	count:DIR    leaves a file named after the machine in the folder while it runs
//	tell:FILE    writes its CALLBACK_URL to the file
//	envelope:FILE  writes its TASK_ENVELOPE to the file
//	bash:FILE    becomes bash, which does what the file says
//	output:SIZE  uploads Pattern(SIZE), and calls back that success
func Play(words []string, env map[string]string) int {
	for i := 0; i < len(words); i++ {
		word, value, _ := strings.Cut(words[i], ":")
		switch word {
		case "success":
			if !callBack(env, fmt.Sprintf(`{"task_id":%q,"status":"success"}`, env["TASK_ID"])) {
				return 9
			}
		case "error":
			if !callBack(env, fmt.Sprintf(`{"task_id":%q,"status":"error","error":"Failed on purpose"}`, env["TASK_ID"])) {
				return 9
			}
		case "wait":
			awaitPipe(value)
		case "once":
			file, err := os.OpenFile(value, os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				i++
				continue
			}
			_ = file.Close()
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
		case "count":
			name := filepath.Join(value, env["FLY_MACHINE_ID"])
			if os.WriteFile(name, nil, 0o600) != nil {
				return 9
			}
			defer func() { _ = os.Remove(name) }() //nolint:revive // it is to be gone at the end, once for each folder
		case "tell":
			if tell(value, env["CALLBACK_URL"]) != nil {
				return 9
			}
		case "envelope":
			if tell(value, env["TASK_ENVELOPE"]) != nil {
				return 9
			}
		case "bash":
			return bash(value)
		case "output":
			if err := leave(value, env); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 9
			}
		case "exit":
			code := 0
			_, _ = fmt.Sscan(value, &code)
			return code
		}
	}
	return 0
}

func callBack(env map[string]string, body string) bool {
	answer, err := http.Post(env["CALLBACK_URL"], "application/json", strings.NewReader(body)) //nolint:noctx,gosec // a worker's last call
	if err != nil {
		fmt.Fprintln(os.Stderr, "the callback failed")
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// tell writes a file that is there whole, or not at all.
func tell(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// bash runs a script in the place of this process's work.
func bash(script string) int {
	command := exec.Command("bash", script)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bash:", err)
		return 9
	}
	return 0
}

// awaitPipe opens a named pipe, which blocks until the test opens it too, and
// reads a byte of it.
func awaitPipe(name string) {
	file, err := os.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	_, _ = file.Read(make([]byte, 1))
}
