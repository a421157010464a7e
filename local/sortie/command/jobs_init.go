package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/domain/job"
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
	argument.Must(c.MarkFlagDirname("folder"))
	c.RunE = cli.Does(func(context.Context, []string) error { return a.initJob(folder) })
	return c
}

// interview asks questions on standard error and reads answers from standard input.
type interview struct {
	app   *app
	lines *bufio.Scanner
}

// ask repeats a question until check accepts the answer. It returns an error if the input ends
// after a refused answer.
func (i interview) ask(question, fallback string, check func(answer string) error) (string, error) {
	for refused := error(nil); ; i.app.Note("%v", refused) {
		if _, err := fmt.Fprintf(i.app.Stderr, "%s [%s]: ", question, fallback); err != nil {
			return "", fmt.Errorf("cannot ask: %w", err)
		}
		more := i.lines.Scan()
		if !more && refused != nil {
			return "", cli.Wrong("%s: %v", question, errors.Join(refused, i.lines.Err()))
		}
		answer := strings.TrimSpace(i.lines.Text())
		if !more || answer == "" {
			answer = fallback
		}
		if refused = check(answer); refused == nil {
			return answer, nil
		}
	}
}

func (a *app) initJob(folder string) error {
	i := interview{a, bufio.NewScanner(a.Stdin)}
	var command []string
	var d, located job.Definition
	text, err := i.ask("Program with its arguments", "echo hello", func(answer string) (err error) {
		if command, err = jobfile.SplitWords(answer); err != nil {
			return err
		}
		if len(command) == 0 {
			return errors.New("want a program, such as python3 report.py")
		}
		d = job.Definition{Image: jobfile.Scheme + command[0], Command: command[1:], ID: "x", RetryConfig: &job.RetryConfig{}}
		located = d
		if _, err = jobfile.Absolute(&located, folder); err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
		return nil
	})
	if err != nil {
		return err
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
	id, err := i.ask("Id of the job", jobfile.ProposeID(command), field("id", func(v string) { located.ID = v }))
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
	name, err := jobfile.Create(folder, d, retries)
	if err != nil {
		return err
	}
	a.Note("%s runs %q. Next:\n", name, text)
	for _, next := range []string{"jobs simulate " + name, "jobs apply -f " + name, "jobs run " + d.ID + " --wait"} {
		a.Note("  %s %s", a.Name, next)
	}
	return a.Result(map[string]string{"id": d.ID, "file": name}, "%s\n", name)
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
