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

// Play is a scripted worker. It executes its words in order and returns the exit
// code.
//
//	success        reports a success without an output
//	error          reports an error
//	wait:FILE      waits until the test writes to the named pipe
//	once:FILE      creates the file; if it exists, skips the next word
//	exit:N         exits with the code
//	deaf           ignores SIGTERM
//	count:DIR      keeps a file named after the machine in the folder while it runs
//	url:FILE       writes CALLBACK_URL to the file
//	envelope:FILE  writes TASK_ENVELOPE to the file
//	bash:FILE      runs the script
//	output:SIZE    uploads Pattern(SIZE) and reports it
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
			defer func() { _ = os.Remove(name) }() //nolint:revive // deferred once for each folder
		case "url":
			if writeFile(value, env["CALLBACK_URL"]) != nil {
				return 9
			}
		case "envelope":
			if writeFile(value, env["TASK_ENVELOPE"]) != nil {
				return 9
			}
		case "bash":
			return runScript(value)
		case "output":
			if err := upload(value, env); err != nil {
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
	answer, err := http.Post(env["CALLBACK_URL"], "application/json", strings.NewReader(body)) //nolint:noctx,gosec // the last call of a worker
	if err != nil {
		fmt.Fprintln(os.Stderr, "the callback failed")
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// writeFile writes a file atomically.
func writeFile(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// runScript runs a bash script.
func runScript(script string) int {
	command := exec.Command("bash", script)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bash:", err)
		return 9
	}
	return 0
}

// awaitPipe blocks until the test opens the named pipe for writing, and reads a byte.
func awaitPipe(name string) {
	file, err := os.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	_, _ = file.Read(make([]byte, 1))
}
