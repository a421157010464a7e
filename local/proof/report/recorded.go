package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// recording is an execution that was recorded on AWS: one JSON object per line of the file in
// RECORDINGS. The tests of LocalStack's Step Functions keep such executions as snapshots.
// Answers of tasks are in TaskResults, and each is used once. Strings such as <timestamp> stand
// for values that differ in each execution.
type recording struct {
	Name        string          `json:"name"`
	Definition  json.RawMessage `json:"definition"`
	Input       json.RawMessage `json:"input"`
	TaskResults json.RawMessage `json:"task_results"`
	Status      string          `json:"expected_status"`
	Output      any             `json:"expected_output"`
	Error       string          `json:"expected_error"`
	Cause       any             `json:"expected_cause"`
	States      []string        `json:"states_entered"`
	Ordered     bool            `json:"ordered"`
}

// played is what "sortie asl run" answers.
type played struct {
	Status      string   `json:"status"`
	Output      any      `json:"output"`
	Error       string   `json:"error"`
	Cause       any      `json:"cause"`
	States      []string `json:"states"`
	Unsupported string   `json:"unsupported"`
}

// measureRecorded plays the recorded executions on the interpreter of the state machine, and
// compares status, output, error, cause and the entered states.
func measureRecorded(ctx context.Context, p *figure.Part) error {
	file := os.Getenv("RECORDINGS")
	if file == "" {
		return errors.New("set RECORDINGS to a file of recorded executions; recorded.go describes its lines")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the recordings: %w", err)
	}
	recordings, asked, err := readRecordings(text)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "run", "./local/sortie", "asl", "run")
	command.Stdin, command.Stderr = bytes.NewReader(asked), os.Stderr
	answers, err := command.Output()
	if err != nil {
		return fmt.Errorf("sortie asl run: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(answers)), "\n")
	if len(lines) != len(recordings) {
		return fmt.Errorf("got %d answers to %d recordings", len(lines), len(recordings))
	}
	agreed, refused := 0, map[string]int{}
	for i, r := range recordings {
		var got played
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			return fmt.Errorf("the answer to %s: %w", r.Name, err)
		}
		switch differs := r.difference(got); {
		case got.Unsupported != "":
			refused[got.Unsupported]++
		case differs != "":
			p.Note("Differs: %s: %s.", r.Name, differs)
		default:
			agreed++
		}
	}
	unsupported := 0
	for _, n := range refused {
		unsupported += n
	}
	p.Count("recorded executions", len(recordings), figure.Neither)
	p.Count("agree with AWS", agreed, figure.More)
	p.Count("refused by name, because they use what the interpreter does not have", unsupported, figure.Less)
	p.Zero("differ", len(recordings)-agreed-unsupported)
	p.Note("The recordings are a file of %d bytes with the SHA-256 %x.", len(text), sha256.Sum256(text))
	return nil
}

// readRecordings returns the recordings, and the lines that the interpreter reads.
func readRecordings(text []byte) ([]recording, []byte, error) {
	var recordings []recording
	var asked bytes.Buffer
	for line := range bytes.Lines(text) {
		var r recording
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, nil, fmt.Errorf("recording %d: %w", len(recordings)+1, err)
		}
		recordings = append(recordings, r)
		ask := map[string]any{"name": r.Name, "definition": r.Definition, "input": r.Input, "task_results": r.TaskResults}
		if len(r.TaskResults) == 0 {
			ask["task_results"] = []any{}
		}
		encoded, err := json.Marshal(ask)
		if err != nil {
			return nil, nil, fmt.Errorf("recording %d: %w", len(recordings), err)
		}
		asked.Write(append(encoded, '\n'))
	}
	return recordings, asked.Bytes(), nil
}

// difference says what differs; empty if nothing does.
func (r recording) difference(got played) string {
	switch {
	case got.Status != r.Status:
		return "the status is " + got.Status + ", recorded was " + r.Status
	case r.Status == "SUCCEEDED" && !same(opened(r.Output), opened(got.Output)):
		return "the output"
	case r.Status != "SUCCEEDED" && got.Error != r.Error:
		return "the error is " + got.Error + ", recorded was " + r.Error
	case r.Status != "SUCCEEDED" && !sameCause(opened(r.Cause), opened(got.Cause)):
		return "the cause"
	}
	if r.States == nil {
		return ""
	}
	want, entered := slices.Clone(r.States), slices.Clone(got.States)
	if !r.Ordered {
		slices.Sort(want)
		slices.Sort(entered)
	}
	if !slices.Equal(want, entered) {
		return "the entered states"
	}
	return ""
}

// placeholder matches strings that the recordings have in place of values that differ.
var placeholder = regexp.MustCompile(`<[\w-]+(:\d+)?>|^(timestamp|date|start-time|snf_role_arn|lambda_function_name|RandomNumberGenerated|executionSucceededEventDetails\.output)$|:111111111111:`)

// opened replaces strings that are JSON objects by the objects, as the recordings do.
func opened(value any) any {
	switch v := value.(type) {
	case string:
		var object map[string]any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &object) == nil {
			return opened(object)
		}
	case map[string]any:
		for key, member := range v {
			v[key] = opened(member)
		}
	case []any:
		for i, member := range v {
			v[i] = opened(member)
		}
	}
	return value
}

// same compares values. A recorded placeholder is the same as everything.
func same(want, got any) bool {
	switch w := want.(type) {
	case string:
		if placeholder.MatchString(w) {
			return true
		}
	case map[string]any:
		g, isObject := got.(map[string]any)
		if !isObject || len(w) != len(g) {
			return false
		}
		for key, member := range w {
			other, found := g[key]
			if !found || !same(member, other) {
				return false
			}
		}
		return true
	case []any:
		g, isList := got.([]any)
		return isList && slices.EqualFunc(w, g, same)
	}
	return want == got
}

// sameCause compares the beginnings of causes: AWS ends some of them with its own details.
func sameCause(want, got any) bool {
	w, isText := want.(string)
	g, both := got.(string)
	if isText && both {
		const compared = 40
		return w[:min(compared, len(w))] == g[:min(compared, len(g))] || placeholder.MatchString(w)
	}
	empty := func(v any) bool { return v == nil || v == "" }
	return empty(want) && empty(got) || same(want, got)
}
