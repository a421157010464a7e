package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// output runs a command in the current folder, with the variables added, and returns what it
// prints. An error has the end of the output.
func output(ctx context.Context, env []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	text := out.String()
	if err != nil {
		return text, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text[max(0, len(text)-2000):])
	}
	return text, nil
}

// tests runs the tests of packages, and returns the names of those that passed, with
// subtests. A failure is an error.
func tests(ctx context.Context, args ...string) ([]string, string, error) {
	text, err := output(ctx, nil, "go", append([]string{"test", "-count=1", "-v"}, args...)...)
	if err != nil {
		return nil, text, err
	}
	var passed []string
	for _, match := range passes.FindAllStringSubmatch(text, -1) {
		passed = append(passed, match[1])
	}
	if len(passed) == 0 {
		return nil, text, errors.New("no test ran")
	}
	return passed, text, nil
}

var passes = regexp.MustCompile(`(?m)^\s*--- PASS: (\S+)`)

// numbers returns the integers that the groups of the pattern match, in their order.
func numbers(pattern *regexp.Regexp, text string) ([]int, error) {
	match := pattern.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("the output has nothing like %s", pattern)
	}
	list := make([]int, 0, len(match)-1)
	for _, group := range match[1:] {
		n, err := strconv.Atoi(group)
		if err != nil {
			return nil, fmt.Errorf("%q in the output is no number: %w", group, err)
		}
		list = append(list, n)
	}
	return list, nil
}

// commitOf returns the short hash of HEAD, with "+" if tracked files differ from it.
func commitOf(ctx context.Context) (string, error) {
	hash, err := output(ctx, nil, "git", "rev-parse", "--short=8", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := output(ctx, nil, "git", "status", "--porcelain", "--untracked-files=no", "--", ":!local/proof/report/results", ":!local/proof/report/REPORT.md")
	if err != nil {
		return "", err
	}
	hash = strings.TrimSpace(hash)
	if changed != "" {
		hash += "+"
	}
	return hash, nil
}

// machine describes this machine: cores, memory, system and Go.
func machine() string {
	return fmt.Sprintf("%d cores%s, %s/%s, %s", runtime.NumCPU(), memory(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// memory returns ", N GB of memory" where /proc has it.
func memory() string {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return ""
	}
	match := regexp.MustCompile(`MemTotal:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		return ""
	}
	kilobytes, err := strconv.Atoi(string(match[1]))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %d GB of memory", (kilobytes+(1<<19))>>20)
}
