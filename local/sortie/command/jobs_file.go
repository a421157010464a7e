package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/run"
)

// jobFile is a job document that was read from a file.
type jobFile struct {
	name       string
	document   []byte
	definition job.Definition
}

// readFile reads a file up to one byte more than a document may have. "-" means standard input.
func (a *app) readFile(name string) ([]byte, error) {
	source := a.Stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, missing(name, err)
		}
		defer func() { _ = opened.Close() }()
		source = opened
	}
	document, err := io.ReadAll(io.LimitReader(source, limit.JobDocument+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return document, nil
}

// readJob reads and checks a job file; "-" means standard input.
func (a *app) readJob(name string) (jobFile, error) {
	document, err := a.readFile(name)
	if err != nil {
		return jobFile{}, err
	}
	d, problems := job.Parse(document, nil)
	f := jobFile{name, document, d}
	if len(problems) == 0 {
		return f, nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = f.at(p.Line, p.Field, p.Problem)
	}
	return f, wrong("%s", strings.Join(lines, "\n"))
}

// at formats a problem of the file like a compiler. A definition from the command line has no
// file name and no lines.
func (f jobFile) at(line int, field, problem string) string {
	if field != "" {
		problem = field + ": " + problem
	}
	if f.name == "" {
		return problem
	}
	return fmt.Sprintf("%s:%d: %s", f.name, line, problem)
}

// explained adds the file name to the problems in a server's error.
func (f jobFile) explained(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Problems) == 0 {
		return err
	}
	lines := make([]string, len(p.Problems))
	for i, each := range p.Problems {
		lines[i] = f.at(each.Line, each.Field, each.Problem)
	}
	return wrong("%s", strings.Join(lines, "\n"))
}

// warn notes the warnings about the file.
func (f jobFile) warn(a *app) {
	for _, warning := range f.definition.Warnings() {
		a.note("%s: warning: %s", f.name, warning)
	}
}

func (f jobFile) contentType() string {
	if json.Valid(f.document) {
		return httpkit.TypeJSON
	}
	return httpkit.TypeYAML
}

// applied is the result of "jobs apply".
type applied struct {
	ID string `json:"id"`
	// Result is created, changed or unchanged.
	Result  string `json:"result"`
	DryRun  bool   `json:"dryRun"`
	Version int64  `json:"version,omitempty"`
	// NextAt is the next firing.
	NextAt  time.Time       `json:"nextAt,omitzero"`
	Changes []appliedChange `json:"changes"`
	// Warnings are the parts of the file that are valid but probably unintended.
	Warnings []string `json:"warnings"`
}

// appliedChange is a field that changes.
type appliedChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

func (a *app) jobsApply() *cobra.Command {
	var file string
	var dryRun bool
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Store the job of a file, and show what changes",
		Long: `Create the job of a file, or change it to what the file says. Standard output has
the fields that change: + new, - removed, ~ changed. The command is idempotent.`,
		Example: "  sortie jobs apply -f nightly-report.yaml --dry-run\n  sortie jobs apply -f nightly-report.yaml",
		Args:    exactly(),
	}
	c.Flags().StringVarP(&file, "file", "f", "", `job file in YAML or JSON, "-" for standard input (required)`)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "let the server check the job, show what would change, and change nothing")
	require(c, "file")
	if err := c.MarkFlagFilename("file", "yaml", "yml", "json"); err != nil {
		panic(err) // the flag is defined above
	}
	c.RunE = does(func(ctx context.Context, _ []string) error {
		f, err := a.readJob(file)
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		result, err := f.apply(ctx, c, dryRun)
		if err != nil {
			return f.explained(err)
		}
		f.warn(a)
		return a.showApplied(result)
	})
	return c
}

func (f jobFile) apply(ctx context.Context, c *client.Client, dryRun bool) (applied, error) {
	id := f.definition.ID
	result := applied{ID: id, Result: "changed", DryRun: dryRun, Changes: []appliedChange{}, Warnings: append([]string{}, f.definition.Warnings()...)}
	before, err := c.Job(ctx, id)
	if client.Gone(err) {
		result.Result, err = "created", nil
	}
	if err != nil {
		return result, err
	}
	changes, err := job.Diff(before.Definition, f.definition)
	if err != nil {
		return result, err
	}
	for _, change := range changes {
		result.Changes = append(result.Changes, appliedChange{change.Field, json.RawMessage(change.Before), json.RawMessage(change.After)})
	}
	result.Version, result.NextAt = before.Version, before.NextAt
	if len(changes) == 0 {
		result.Result = "unchanged"
	}
	if len(changes) == 0 {
		return result, nil
	}
	put := c.PutJob
	if dryRun {
		put = c.PreviewJob
	}
	after, err := put(ctx, id, f.document, f.contentType(), before.Tag)
	result.Version, result.NextAt = after.Version, after.NextAt
	return result, err
}

func (a *app) showApplied(r applied) error {
	if a.json {
		return a.print(r)
	}
	head := r.Result
	if r.DryRun && r.Result != "unchanged" {
		head = map[string]string{"created": "would create", "changed": "would change"}[r.Result]
	}
	text := head + " " + r.ID
	if r.Version > 0 {
		text += fmt.Sprintf(", version %d", r.Version)
	}
	if !r.NextAt.IsZero() {
		text += ", next firing " + moment(r.NextAt)
	}
	for _, change := range r.Changes {
		text += "\n  " + display.Clean(job.Change{Field: change.Field, Before: string(change.Before), After: string(change.After)}.String())
	}
	return a.say("%s\n", text)
}

// simulatedFiring is a line of "jobs simulate --json".
type simulatedFiring struct {
	ScheduledAt string       `json:"scheduledAt"`
	LocalTime   string       `json:"localTime"`
	Decision    job.Decision `json:"decision"`
	Reasons     []string     `json:"reasons"`
	// FiredAt is the time of the firing's commit. Trigger is the trigger of its run.
	FiredAt string      `json:"firedAt"`
	Trigger run.Trigger `json:"trigger"`
	// Count and Until describe firings that are skipped together.
	Count int    `json:"count,omitempty"`
	Until string `json:"until,omitempty"`
}

func (a *app) jobsSimulate() *cobra.Command {
	var from, until string
	var down []string
	most := 10
	c := &cobra.Command{
		Use: "simulate FILE", Short: "Show when the job of a file fires",
		Long: `Show the firings of a job file, and what its constraints would do at each. The
command needs no server. The schedule counts from --from, which is exclusive;
--until is inclusive. The decision is "run" if no constraint can prevent the run,
and "depends" if one can: the reasons say which, and what follows then.

--down FROM..TO is an outage: nothing fires from FROM until TO, two times of RFC
3339. What happens to the times in between follows from the fields missed,
startingDeadline and constraints.catchUp of the job. "skip" is a record of firings
that were missed, with their number. The flag can be repeated.`,
		Example: "  sortie jobs simulate nightly-report.yaml\n" +
			"  sortie jobs simulate nightly-report.yaml --from 2027-03-27T00:00:00Z --until 2027-03-30T00:00:00Z --json\n" +
			"  sortie jobs simulate nightly-report.yaml --from 2027-03-27T00:00:00Z --down 2027-03-28T01:00:00Z..2027-03-28T09:30:00Z",
		Args: exactly("FILE"),
	}
	flags := c.Flags()
	flags.StringVar(&from, "from", "", "time after which firings are shown, RFC 3339; by default now")
	flags.StringVar(&until, "until", "", "time until which firings are shown, RFC 3339; by default 400 years later")
	flags.IntVar(&most, "limit", most, "how many, 1 to 100000")
	flags.StringArrayVar(&down, "down", nil, "outage FROM..TO, two times of RFC 3339 (repeatable)")
	c.RunE = does(func(_ context.Context, args []string) error {
		if most < 1 || most > 100_000 {
			return wrong("--limit: %d is out of range, want 1 to 100000", most)
		}
		after, err := timeFlag("from", from, a.Clock.Now())
		if err != nil {
			return err
		}
		last, err := timeFlag("until", until, after.AddDate(400, 0, 0))
		if err != nil {
			return err
		}
		if last.Before(after) {
			return wrong("--until: %s is before --from, %s", until, after.Format(time.RFC3339))
		}
		outages, err := outagesOf(down)
		if err != nil {
			return err
		}
		f, err := a.readJob(args[0])
		if err != nil {
			return err
		}
		if f.definition.Schedule == "" {
			return wrong("%s: the job has no schedule, want one to simulate", f.name)
		}
		f.warn(a)
		return a.showFirings(job.Simulate(f.definition, after, last, most, outages...))
	})
	return c
}

// outagesOf parses the values of --down.
func outagesOf(texts []string) (outages []job.Outage, err error) {
	for _, text := range texts {
		first, last, ok := strings.Cut(text, "..")
		from, wrongFrom := time.Parse(time.RFC3339, first)
		to, wrongTo := time.Parse(time.RFC3339, last)
		if !ok || wrongFrom != nil || wrongTo != nil {
			return nil, wrong("--down: malformed outage %q, want FROM..TO such as 2027-03-28T01:00:00Z..2027-03-28T09:30:00Z", text)
		}
		if !from.Before(to) {
			return nil, wrong("--down: %s does not end after it begins", text)
		}
		outages = append(outages, job.Outage{From: from, To: to})
	}
	return outages, nil
}

func (a *app) showFirings(firings []job.SimulatedFiring) error {
	t := display.NewTable("SCHEDULED", "LOCAL TIME", "DECISION")
	for _, f := range firings {
		line := simulatedFiring{
			ScheduledAt: f.ScheduledAt.UTC().Format(time.RFC3339), LocalTime: f.ScheduledAt.Format(time.RFC3339), Decision: f.Decision,
			Reasons: append([]string{}, f.Reasons...), FiredAt: f.FiredAt.UTC().Format(time.RFC3339), Trigger: f.Trigger,
		}
		if f.Decision == job.DecisionSkip {
			line.Count, line.Until = f.Count, f.Until.UTC().Format(time.RFC3339)
		}
		if a.json {
			if err := a.printLine(line); err != nil {
				return err
			}
			continue
		}
		decision := string(f.Decision)
		if late := f.FiredAt.Sub(f.ScheduledAt); late > 0 && f.Decision != job.DecisionSkip {
			decision += ", " + display.Duration(late) + " late"
		}
		t.Row(line.ScheduledAt, f.ScheduledAt.Format("Mon 2006-01-02 15:04:05 MST"), decision)
		for _, reason := range line.Reasons {
			t.Row("", "", "  "+reason)
		}
	}
	if a.json {
		return nil
	}
	if len(firings) == 0 {
		a.note("No firings.")
	}
	_, err := t.WriteTo(a.Stdout)
	return err
}
