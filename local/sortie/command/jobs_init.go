package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/job"
)

func (a *app) jobsInit() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use: "init", Short: "Ask five questions and write a job file",
		Long: `Ask for the program, the id, the schedule, the time zone and the retries of a job,
and write a job file with comments about what else it can say. An empty answer, or
the end of standard input, is the answer in brackets.

The first line of the file names its JSON Schema for editors with
yaml-language-server. The command writes the schema beside it, as ` + jobfile.SchemaName + `. It
replaces no file of a job.`,
		Example: "  sortie jobs init\n  printf 'python3 report.py\\nreport\\n' | sortie jobs init",
	}
	c.Flags().StringVar(&folder, "folder", ".", "folder of the file")
	must(c.MarkFlagDirname("folder"))
	c.RunE = does(func(context.Context, []string) error { return a.initJob(folder) })
	return c
}

// interview asks questions on standard error and reads answers from standard input.
type interview struct {
	app   *app
	lines *bufio.Scanner
}

// ask repeats a question until check accepts the answer. At the end of the input a refused
// answer is an error.
func (i interview) ask(question, fallback string, check func(answer string) error) (string, error) {
	for {
		if _, err := fmt.Fprintf(i.app.Stderr, "%s [%s]: ", question, fallback); err != nil {
			return "", fmt.Errorf("cannot ask: %w", err)
		}
		more := i.lines.Scan()
		answer := strings.TrimSpace(i.lines.Text())
		if !more || answer == "" {
			answer = fallback
		}
		refused := check(answer)
		if refused == nil {
			return answer, nil
		}
		if !more {
			return "", wrong("%s: %v", question, errors.Join(refused, i.lines.Err()))
		}
		i.app.note("%v", refused)
	}
}

func (a *app) initJob(folder string) error {
	i := interview{a, bufio.NewScanner(a.Stdin)}
	var command []string
	text, err := i.ask("Program with its arguments", "echo hello", func(answer string) (err error) {
		if command, err = jobfile.SplitWords(answer); err == nil && len(command) == 0 {
			err = errors.New("want a program, such as python3 report.py")
		}
		return err
	})
	if err != nil {
		return err
	}
	d := job.Definition{Image: jobfile.Scheme + command[0], Command: command[1:], ID: "x", RetryConfig: &job.RetryConfig{}}
	located := d
	if _, err := jobfile.Absolute(&located, folder); err != nil {
		return wrong("%s: %v", command[0], err)
	}
	// field returns a check of one field, by the rules of job files.
	field := func(name string, set func(string)) func(string) error {
		return func(answer string) error {
			set(answer)
			for _, p := range located.Validate(nil) {
				if strings.HasPrefix(p.Field, name) {
					return fmt.Errorf("%s: %s", p.Field, p.Problem)
				}
			}
			return nil
		}
	}
	id, err := i.ask("Id of the job", idOf(command), field("id", func(v string) { located.ID = v }))
	if err != nil {
		return err
	}
	schedule, err := i.ask("Schedule, as in cron", "30 2 * * *", field("schedule", func(v string) { located.Schedule = v }))
	if err != nil {
		return err
	}
	zone, err := i.ask("Time zone", a.localZone(), field("timeZone", func(v string) { located.TimeZone = v }))
	if err != nil {
		return err
	}
	retries, err := i.ask("Retries after a failure", "2", func(answer string) error {
		n, err := strconv.Atoi(answer)
		if err != nil {
			return fmt.Errorf("malformed number %q, want a whole number", answer)
		}
		return field("retryConfig", func(string) { located.RetryConfig.MaxRetries = &n })(answer)
	})
	if err != nil {
		return err
	}
	d.ID, d.Schedule, d.TimeZone = id, schedule, zone
	return a.writeJob(folder, d, text, retries)
}

// idOf proposes the id of a job from its command: the name of the script, else of the program.
func idOf(command []string) string {
	name := filepath.Base(command[0])
	if len(command) > 1 && strings.Contains(command[1], ".") {
		name = filepath.Base(command[1])
	}
	name = strings.TrimSuffix(name, filepath.Ext(name))
	id := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	if id == "" {
		return "job"
	}
	return id[:min(len(id), 63)]
}

// localZone returns the name of the user's time zone, by default UTC.
func (a *app) localZone() string {
	zone, _ := a.Env("TZ")
	if target, err := os.Readlink("/etc/localtime"); zone == "" && err == nil {
		_, zone, _ = strings.Cut(target, "zoneinfo/")
	}
	if zone == "" || len(job.Definition{ID: "x", Image: "x", Schedule: "@daily", TimeZone: zone}.Validate(nil)) > 0 {
		return "UTC"
	}
	return zone
}

// jobText is the file that init writes. JSON strings are strings of YAML.
const jobText = `# yaml-language-server: $schema=./%[1]s
# The job %[2]s. Every field is in shared/job/README.md; an editor completes them.
id: %[2]s

# A name in PATH, or a path. It and arguments that name files are relative to this folder.
image: %[3]s
command: %[4]s

# Minute, hour, day of the month, month, day of the week. See "sortie jobs simulate".
schedule: %[5]s
timeZone: %[6]s

# A failed attempt is repeated after a growing delay.
retryConfig: {maxRetries: %[7]s, initialDelay: 30s}

constraints:
  # A run waits for the end of the one before it.
  maxConcurrentRuns: 1
  # A longer run is stopped, and fails.
  maxAllowedRunTime: 1h

# What the program has in its environment.
# env: {LEVEL: info}

# The file that the program writes is kept and can be downloaded.
# output: {path: report.csv, contentType: text/csv}

# Each end of a run can call an address.
# actions:
#   onFailure: {type: webhook, parameters: {url: "https://example.org/alert"}}
`

func (a *app) writeJob(folder string, d job.Definition, command, retries string) error {
	quoted := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings and lists of them
		}
		return string(text)
	}
	text := fmt.Sprintf(jobText, jobfile.SchemaName, d.ID, quoted(d.Image), quoted(append([]string{}, d.Command...)), quoted(d.Schedule), quoted(d.TimeZone), retries)
	name := filepath.Join(folder, d.ID+".yaml")
	if err := createFile(name, text); err != nil {
		return err
	}
	if err := createFile(filepath.Join(folder, jobfile.SchemaName), string(contract.JobSchema())); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	a.note("%s runs %q. Next:\n", name, command)
	for _, next := range []string{"jobs simulate " + name, "jobs apply -f " + name, "jobs run " + d.ID + " --wait"} {
		a.note("  %s %s", a.Name, next)
	}
	return a.result(map[string]string{"id": d.ID, "file": name}, "%s\n", name)
}

// createFile writes a new file. The error for an existing one is fs.ErrExist.
func createFile(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // G302: a file of the user's project
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w, want another id or folder", name, fs.ErrExist)
	}
	if err == nil {
		_, err = io.WriteString(file, text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}
