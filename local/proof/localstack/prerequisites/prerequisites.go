// Package prerequisites finds the programs that install and run LocalStack.
//
// It reports all missing programs together, with instructions for their installation. A program
// is found only if it prints its version. The package installs nothing.
package prerequisites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Host is the machine on which programs are looked up.
type Host struct {
	// Env looks up PATH, HOME, PYTHON313, PYTHON27, PYENV_ROOT and JAVA_HOME.
	Env func(string) (string, bool)
	// Environ is the environment in which the programs run, as NAME=VALUE.
	Environ []string
	// Arch is the processor in Go's notation; "" is the processor for which this program was
	// built.
	Arch string
}

// Tools are the paths of the programs. Paths of unused programs are empty.
type Tools struct {
	Python, Java, Maven string
	Docker              string
	Go, Node, NPM       string
}

// Missing is the list of missing prerequisites.
type Missing []string

// Error returns the list with one prerequisite per line.
func (m Missing) Error() string {
	return "this machine lacks:\n  - " + strings.Join(m, "\n  - ")
}

// Python returns the tools to run LocalStack in a Python environment.
func (h Host) Python(ctx context.Context) (Tools, error) {
	s := &search{h, ctx, nil}
	tools := s.common()
	tools.Python = s.python()
	tools.Java = s.java()
	tools.Maven = s.program("mvn", "Maven, which fetches DynamoDB Local: apt install maven, or brew install maven")
	if arch := s.arch(); arch != "amd64" {
		s.lack("an x86-64 processor for DynamoDB Local's native library (this is %s): use Docker with LOCALSTACK=docker", arch)
	}
	return tools, s.result()
}

// Docker returns the tools to run LocalStack in a container.
func (h Host) Docker(ctx context.Context) (Tools, error) {
	s := &search{h, ctx, nil}
	tools := s.common()
	tools.Docker = s.program("docker", "Docker's command line: https://docs.docker.com/engine/install, or omit LOCALSTACK=docker")
	if tools.Docker != "" {
		if text, err := s.run(tools.Docker, "version", "--format", "{{.Server.Version}}"); err != nil {
			s.lack("a running Docker engine: start it, or omit LOCALSTACK=docker (docker version: %s)", firstLine(text))
		}
	}
	return tools, s.result()
}

// search collects the missing prerequisites.
type search struct {
	Host

	ctx     context.Context
	missing Missing
}

func (s *search) result() error {
	if len(s.missing) > 0 {
		return s.missing
	}
	return nil
}

func (s *search) lack(format string, args ...any) {
	s.missing = append(s.missing, fmt.Sprintf(format, args...))
}

func (s *search) arch() string {
	if s.Arch != "" {
		return s.Arch
	}
	return runtime.GOARCH
}

// common finds the programs that both ways need. Go builds the functions and the CDK app, and
// the CDK runs on Node.
func (s *search) common() Tools {
	t := Tools{Go: s.program("go", "Go: https://go.dev/dl"), NPM: s.program("npm", "npm, which comes with Node: https://nodejs.org")}
	t.Node, _ = s.look("node")
	const how = "Node 20 or newer%s: https://nodejs.org, or nvm install 22"
	if t.Node == "" {
		s.lack(how, "")
	} else if text, _ := s.run(t.Node, "--version"); major(text) < 20 {
		s.lack(how, printed(t.Node, text))
	}
	return t
}

func (s *search) java() string {
	const how = "a JDK or JRE 17 or newer, for DynamoDB Local%s: apt install openjdk-17-jre-headless, or brew install openjdk; JAVA_HOME may name it"
	file, found := s.look("java")
	if home, ok := s.Env("JAVA_HOME"); ok && home != "" {
		file, found = filepath.Join(home, "bin", "java"), true
	}
	if !found {
		s.lack(how, "")
		return ""
	}
	text, _ := s.run(file, "-version")
	if _, version, _ := strings.Cut(text, `version "`); major(version) < 17 {
		s.lack(how, printed(file, text))
	}
	return file
}

// look searches PATH for a program.
func (s *search) look(name string) (string, bool) {
	path, _ := s.Env("PATH")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

func (s *search) program(name, how string) string {
	file, found := s.look(name)
	if !found {
		s.lack("%s", how)
	}
	return file
}

// answerWithin is the time limit for a program that prints its version.
const answerWithin = time.Minute

// run runs a program and returns its standard output and standard error.
func (s *search) run(file string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, answerWithin)
	defer cancel()
	command := exec.CommandContext(ctx, file, args...)
	command.Env, command.WaitDelay = s.Environ, time.Second
	text, err := command.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return string(text), fmt.Errorf("cannot run %s: %w", file, err)
	}
	return string(text), nil
}

var number = regexp.MustCompile(`^v?(\d+)`)

// major returns the first number of a version, or 0.
func major(version string) int {
	found := number.FindStringSubmatch(strings.TrimSpace(version))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return n
}

func printed(file, text string) string {
	return fmt.Sprintf(" (%s printed %q)", file, firstLine(text))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
