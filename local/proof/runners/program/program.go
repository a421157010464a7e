//go:build unix

// Package program is the program of the job files of package runners. It executes its arguments
// in order and needs nothing of its image.
package program

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/daemons"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/wrap"
)

// Main executes the words and returns the exit code. env is the environment.
//
//	out:TEXT    writes a line to standard output
//	err:TEXT    writes a line to standard error
//	env:NAME    writes the variable to standard output
//	copy        copies standard input to standard output
//	write:TEXT  writes the text to the output file
//	lines:N     writes N numbered lines of 100 bytes to standard output
//	first:N     exits with the code if the attempt is the first
//	memory:MB   uses memory
//	kill:N      sends the signal to itself
//	daemons     starts what package daemons has, with the variable MARK as its mark
//	orphan      kills the wrapper, and does not end
//	obey        waits for SIGTERM
//	ignore      ignores SIGTERM from now on
//	rest        does not end
//	exit:N      exits with the code
func Main(words []string, env map[string]string) int {
	terminated := make(chan os.Signal, 1)
	for _, each := range words {
		word, value, _ := strings.Cut(each, ":")
		number, _ := strconv.Atoi(value)
		switch word {
		case "out":
			fmt.Fprintln(os.Stdout, value)
		case "err":
			fmt.Fprintln(os.Stderr, value)
		case "env":
			fmt.Fprintln(os.Stdout, value+"="+env[value])
		case "copy":
			if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
				return failed(err)
			}
		case "write":
			if err := os.WriteFile(env["SORTIE_OUTPUT"], []byte(value), 0o600); err != nil {
				return failed(err)
			}
		case "lines":
			if err := lines(os.Stdout, number); err != nil {
				return failed(err)
			}
		case "first":
			if env["SORTIE_ATTEMPT"] == "1" {
				return number
			}
		case "memory":
			use(number)
		case "kill":
			if err := syscall.Kill(os.Getpid(), syscall.Signal(number)); err != nil {
				return failed(err)
			}
			rest()
		case "daemons":
			if err := daemons.StartAll(env["MARK"]); err != nil {
				return failed(err)
			}
		case "orphan":
			if err := killWrapper(); err != nil {
				return failed(err)
			}
			rest()
		case "obey":
			signal.Notify(terminated, syscall.SIGTERM)
			fmt.Fprintln(os.Stdout, "begun")
			<-terminated
		case "ignore":
			signal.Ignore(syscall.SIGTERM)
		case "rest":
			fmt.Fprintln(os.Stdout, "begun")
			rest()
		case "exit":
			return number
		default:
			return failed(fmt.Errorf("unknown word %q", each))
		}
	}
	return 0
}

// failed reports an error of the program itself.
func failed(err error) int {
	fmt.Fprintln(os.Stderr, "program:", err)
	return 99
}

// killWrapper kills the parent process if that is a wrapper.
func killWrapper() error {
	parent := os.Getppid()
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
	if err != nil {
		return err
	}
	if !strings.Contains(string(args), wrap.Command) && !strings.Contains(string(args), supervisor.Command) && !strings.Contains(string(args), "sortie-exec") {
		return fmt.Errorf("the process above is no wrapper: %q", args)
	}
	return syscall.Kill(parent, syscall.SIGKILL)
}

// rest never returns. A timer keeps the runtime from reporting a deadlock.
func rest() {
	for range time.Tick(time.Hour) {
	}
}

// lineSize is the size of a line that lines writes, in bytes.
const lineSize = 100

func lines(to io.Writer, count int) error {
	text := &strings.Builder{}
	for i := range count {
		fmt.Fprintf(text, "%0*d\n", lineSize-1, i+1)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// use writes to each page of the memory and keeps it for a second, so that a memory limit
// applies.
func use(megabytes int) {
	var held [][]byte
	for range megabytes {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
	}
	<-time.After(time.Second)
	fmt.Fprintln(os.Stdout, "used", len(held))
}
