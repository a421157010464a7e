package job_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestArgumentsHaveTheSizesOfLinux checks variables and arguments at the limits of a single one
// and of their total, in a definition and in the parameters of a run.
func TestArgumentsHaveTheSizesOfLinux(t *testing.T) {
	t.Parallel()
	const most = 128<<10 - 1 // with the name, without the NUL
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, row := range map[string]struct {
		env, parameters map[string]string
		command         []string
		field           string
	}{
		"variable":               {env: map[string]string{"A": text(most - 2)}},
		"long variable":          {env: map[string]string{"A": text(most - 1)}, field: "env.A"},
		"140 kB":                 {parameters: map[string]string{"BIG": text(140_000)}, field: "parameters.BIG"},
		"parameter":              {parameters: map[string]string{"LONG_NAME": text(most - 10)}},
		"long parameter":         {parameters: map[string]string{"LONG_NAME": text(most - 9)}, field: "parameters.LONG_NAME"},
		"argument":               {command: []string{text(most)}},
		"long argument":          {command: []string{"a", text(most + 1)}, field: "command.1"},
		"sum":                    {env: map[string]string{"A": text(80 << 10)}, parameters: map[string]string{"B": text(79 << 10)}},
		"long sum":               {env: map[string]string{"A": text(80 << 10)}, parameters: map[string]string{"B": text(80 << 10)}, field: "parameters"},
		"long sum of a job":      {env: map[string]string{"A": text(80 << 10)}, command: []string{text(80 << 10)}, field: "command"},
		"parameter in its place": {env: map[string]string{"A": text(120 << 10)}, parameters: map[string]string{"A": text(120 << 10)}},
	} {
		d := job.Definition{ID: "a", Image: "b", Command: row.command, Env: map[string]job.Variable{}}
		for name, value := range row.env {
			d.Env[name] = job.Variable{Value: value}
		}
		problems := append(d.Validate(nil), d.CheckParameters(row.parameters)...)
		if row.field == "" && len(problems) > 0 || row.field != "" && (len(problems) == 0 || problems[0].Field != row.field) {
			t.Errorf("%s: got %.200v, want a problem of %q", name, problems, row.field)
		}
	}
}

// TestDurationNamesTheRightOne parses durations in invalid units. The error must name the right
// value.
func TestDurationNamesTheRightOne(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1d": "the largest unit is the hour, want 24h", "2w": "want 336h", "1 day": "want one such as 90s", "10": "want one such as 90s", "1.5d": "want one such as 90s", "99999d": "want one such as 90s",
	} {
		_, problems := job.Parse([]byte("id: a\nimage: b\nconstraints: {maxAllowedRunTime: '"+text+"'}\n"), nil)
		if len(problems) != 1 || problems[0].Field != "constraints.maxAllowedRunTime" || !strings.Contains(problems[0].Problem, want) {
			t.Errorf("%s: got %v, want %q", text, problems, want)
		}
	}
}

// TestUnknownFieldNamesTheOneThatWasMeant misspells field names in several objects.
func TestUnknownFieldNamesTheOneThatWasMeant(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"shedule: '@every 1h'":                 "shedule: unknown field, did you mean schedule?",
		"comand: [a]":                          "comand: unknown field, did you mean command?",
		"constraints: {maxConcurentRuns: 1}":   "constraints.maxConcurentRuns: unknown field, did you mean maxConcurrentRuns?",
		"retryConfig: {maxRetrys: 1}":          "retryConfig.maxRetrys: unknown field, did you mean maxRetries?",
		"exitCodes: {succes: [1]}":             "exitCodes.succes: unknown field, did you mean success?",
		"cron: '* * * * *'":                    "cron: unknown field, want one of ",
		"actions: {onFail: {type: skip}}":      "actions.onFail: unknown field, want one of ",
		"actions: {onSuccess: {typ: webhook}}": "actions.onSuccess.typ: unknown field, did you mean type?",
	} {
		_, problems := job.Parse([]byte("id: a\nimage: b\n"+document+"\n"), nil)
		if len(problems) == 0 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: got %v, want %q", document, problems, want)
		}
	}
}
