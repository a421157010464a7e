//go:build unix

// Package program is the program of the job files of package runners. It does what its
// arguments say, in order, and needs nothing of its image.
package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
//	leave       starts a process in a session of its own, which ignores SIGTERM and does not end
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
		case "leave":
			if err := leave(os.Args[:len(os.Args)-len(words)]); err != nil {
				return failed(err)
			}
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

// leave starts this program, which self are the first words of, and returns when it runs.
func leave(self []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	attributes := os.ProcAttr{Files: []*os.File{nil, write, write}, Sys: &syscall.SysProcAttr{Setsid: true}}
	process, err := os.StartProcess(program, append(slices.Clone(self), "ignore", "rest"), &attributes)
	if closed := write.Close(); err == nil {
		err = closed
	}
	if err == nil {
		_, err = io.ReadFull(read, make([]byte, len("begun\n")))
	}
	if err == nil {
		err = process.Release()
	}
	return errors.Join(err, read.Close())
}

// rest does not return. A timer keeps the runtime from reporting a deadlock.
func rest() {
	for range time.Tick(time.Hour) {
	}
}

// lineSize is the size of a line of lines, in bytes.
const lineSize = 100

func lines(to io.Writer, count int) error {
	text := &strings.Builder{}
	for i := range count {
		fmt.Fprintf(text, "%0*d\n", lineSize-1, i+1)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// use writes to each page of the memory and keeps it for a second, in which its limit
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
