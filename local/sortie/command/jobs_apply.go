package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

// applied is the result of "jobs apply" for a job.
type applied struct {
	ID string `json:"id"`
	// Result is created, changed, unchanged or deleted.
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

// applyFlags are the flags of the commands that compare job files with the stored jobs.
type applyFlags struct {
	files                 []string
	dryRun, yes, exitCode bool
	prune, owner          string
}

func (f *applyFlags) define(c *cobra.Command) {
	filesFlag(c, &f.files)
	c.Flags().StringVar(&f.prune, "prune", "", "delete the jobs whose ids match this pattern, such as 'reports-*', and that no file has")
	c.Flags().StringVar(&f.owner, "owner", "", "label KEY=VALUE of the jobs of the files; other stored jobs are neither changed nor deleted")
}

// filesFlag defines the flag of job files, which may be arguments too.
func filesFlag(c *cobra.Command, files *[]string) {
	c.Flags().StringArrayVarP(files, "file", "f", nil, `job file in YAML or JSON, a folder of them, or "-" for standard input (repeatable); the same as an argument`)
	argument.Must(c.MarkFlagFilename("file", jobfile.Extensions...))
	c.ValidArgsFunction = cobra.FixedCompletions(jobfile.Extensions, cobra.ShellCompDirectiveFilterFileExt)
	c.Args = func(cmd *cobra.Command, args []string) error {
		return argument.AtLeastOne("FILE")(cmd, slices.Concat(*files, args))
	}
}

func (a *app) jobsApply() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use: "apply FILE...", Short: "Store the jobs of files, and show what changes",
		Long: `Create the jobs of files, or change them to what the files say. A file has one job,
or several separated by lines "---"; of a folder, all files are read that end with
.yaml, .yml or .json. All files are checked before the first job changes. Standard
output has the fields that change: + new, - removed, ~ changed. The command is
idempotent.

A program of this machine, exec:PROGRAM, is a name in PATH or a path. It and the
arguments that name existing files are relative to the folder of their file.

--prune PATTERN deletes stored jobs that no file has. The pattern says which jobs
belong to the files; jobs whose ids do not match are never deleted. Without --yes
the command lists them and changes nothing.

--owner KEY=VALUE names the owner of the files, such as a repository, by a label
that each of their jobs has. A stored job without the label is not changed, and
--prune deletes jobs with the label only.`,
		Example: "  sortie jobs apply -f nightly-report.yaml --dry-run\n  sortie jobs apply -f nightly-report.yaml\n" +
			"  sortie jobs apply -f jobs/ --prune 'reports-*' --yes\n  sortie jobs apply -f jobs/ --owner repository=reports --prune '*' --yes",
	}
	f.define(c)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "let the server check the jobs, show what would change, and change nothing")
	c.Flags().BoolVar(&f.yes, "yes", false, "delete what --prune selects")
	c.RunE = cli.Does(func(ctx context.Context, names []string) error {
		f.files = append(f.files, names...)
		return a.applyFiles(ctx, f)
	})
	return c
}

func (a *app) jobsDiff() *cobra.Command {
	f := applyFlags{dryRun: true}
	c := &cobra.Command{
		Use: "diff FILE...", Short: "Show how job files differ from the stored jobs",
		Long:    `Show what "sortie jobs apply" with the same flags would change. It changes nothing.`,
		Example: "  sortie jobs diff -f jobs/ --exit-code",
	}
	f.define(c)
	c.Flags().BoolVar(&f.exitCode, "exit-code", false, "exit with 1 if something differs")
	c.RunE = cli.Does(func(ctx context.Context, names []string) error {
		f.files = append(f.files, names...)
		return a.applyFiles(ctx, f)
	})
	return c
}

func (a *app) jobsValidate() *cobra.Command {
	var files []string
	c := &cobra.Command{
		Use: "validate FILE...", Short: "Check job files without a server",
		Long: `Check the jobs of files and folders without a server. It cannot check what depends
on the server: its pools, its secrets and its limits. "sortie jobs diff" does.`,
		Example: "  sortie jobs validate jobs/",
		RunE:    cli.Does(func(_ context.Context, names []string) error { return a.validateFiles(append(files, names...)) }),
	}
	filesFlag(c, &files)
	return c
}

// validateFiles checks the jobs of files, and prints their ids.
func (a *app) validateFiles(names []string) error {
	files, err := jobfile.Read(a.ReadUpTo, names)
	if err != nil {
		return err
	}
	valid := []map[string]string{}
	for _, f := range files {
		a.warn(f, f.Definition.Warnings())
		valid = append(valid, map[string]string{"id": f.Definition.ID, "file": f.Name})
		if !a.JSON {
			if err := a.Say("valid %s, %s\n", f.Definition.ID, display.Clean(f.Name)); err != nil {
				return err
			}
		}
	}
	if a.JSON {
		return a.Print(map[string]any{"jobs": valid})
	}
	return nil
}

// applyFiles stores the jobs of files and deletes those that --prune selects. It does either
// only if the server accepts all files.
func (a *app) applyFiles(ctx context.Context, flags applyFlags) error {
	if _, err := path.Match(flags.prune, ""); err != nil {
		return cli.Wrong("--prune: malformed pattern %q, want one such as 'reports-*'", flags.prune)
	}
	files, err := jobfile.Read(a.ReadUpTo, flags.files)
	if err != nil {
		return err
	}
	if err := checkOwner(flags.owner, files); err != nil {
		return err
	}
	files = inOrder(files)
	c, err := a.Client()
	if err != nil {
		return err
	}
	surplus, err := surplus(ctx, c, flags, files)
	if err != nil {
		return err
	}
	if err := a.checkBelow(flags.files, files, surplus); err != nil {
		return err
	}
	unconfirmed := len(surplus) > 0 && !flags.yes && !flags.dryRun
	preview := flags.dryRun || unconfirmed
	if !preview && len(files) > 1 {
		if _, err := apply(ctx, c, files, flags.owner, true); err != nil {
			return err
		}
	}
	results, failed := apply(ctx, c, files, flags.owner, preview)
	var deleted []string
	if preview && failed == nil {
		deleted = surplus
	} else if failed == nil {
		deleted, failed = deleteJobs(ctx, c, surplus)
	}
	for _, id := range deleted {
		results = append(results, applied{ID: id, Result: "deleted", DryRun: preview, Changes: []appliedChange{}, Warnings: []string{}})
	}
	for i, f := range files {
		if i < len(results) {
			results[i].Warnings = withoutStored(results[i].Warnings, f, files)
			a.warn(f, results[i].Warnings)
		}
	}
	if err := errors.Join(failed, a.showAll(results, len(files) == 1 && flags.prune == "")); err != nil {
		return err
	}
	if unconfirmed {
		return cli.Wrong("--prune: %d jobs would be deleted, and nothing has changed; want --yes too", len(surplus))
	}
	for _, r := range results {
		if flags.exitCode && r.Result != "unchanged" {
			return cli.Advised{Err: errors.New("the files and the stored jobs differ"), Code: cli.ExitFailed}
		}
	}
	return nil
}

// checkOwner checks the label of the owner, and that the jobs of the files have it.
func checkOwner(owner string, files []jobfile.File) error {
	key, value, ok := strings.Cut(owner, "=")
	if owner != "" && (!ok || !label.ValidKey(key) || value == "" || !label.ValidValue(value)) {
		return cli.Wrong("--owner: malformed label %q, want KEY=VALUE, such as repository=reports", owner)
	}
	for _, f := range files {
		if owner != "" && f.Definition.Labels[key] != value {
			return cli.Wrong("%s: job %s has the label %s=%q, want labels: {%s: %s}, that of --owner", display.Clean(f.Name), f.Definition.ID, key, f.Definition.Labels[key], key, value)
		}
	}
	return nil
}

// owns reports whether the labels have that of the owner. Without an owner it is true.
func owns(owner string, labels map[string]string) bool {
	key, value, _ := strings.Cut(owner, "=")
	return owner == "" || labels[key] == value
}

// surplus returns the ids of stored jobs that --prune and --owner select and that no file has.
func surplus(ctx context.Context, c *client.Client, flags applyFlags, files []jobfile.File) (ids []string, err error) {
	if flags.prune == "" {
		return nil, nil
	}
	own := map[string]bool{}
	for _, f := range files {
		own[f.Definition.ID] = true
	}
	jobs, err := allJobs(ctx, c, client.Page{Limit: 1000})
	for _, j := range jobs.Jobs {
		if match, _ := path.Match(flags.prune, j.ID); match && !own[j.ID] && owns(flags.owner, j.Labels) { // the pattern was checked before
			ids = append(ids, j.ID)
		}
	}
	return ids, err
}

// checkBelow notes the jobs of folders below those that are applied, whose files are not read. If
// --prune would delete one of them, it returns an error.
func (a *app) checkBelow(names []string, files []jobfile.File, surplus []string) error {
	below := jobfile.Below(a.ReadUpTo, names)
	for _, f := range files {
		delete(below, f.Definition.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(below)) {
		if name := display.Clean(below[id]); slices.Contains(surplus, id) {
			return cli.Wrong("--prune: job %s would be deleted, but %s has it; apply the folder %s too, because folders in folders are not read", id, name, filepath.Dir(name))
		} else if len(files) > 0 {
			a.Note("%s: job %s is left out, because folders in folders are not read", name, id)
		}
	}
	return nil
}

// apply stores the jobs, or previews that. It returns the results before the first error.
func apply(ctx context.Context, c *client.Client, files []jobfile.File, owner string, dryRun bool) (results []applied, err error) {
	for _, f := range files {
		one, err := applyFile(ctx, c, f, owner, dryRun)
		if err != nil {
			return results, f.Explained(err)
		}
		results = append(results, one)
	}
	return results, nil
}

// showAll prints the results. single is the form of the result for one file.
func (a *app) showAll(results []applied, single bool) error {
	switch {
	case !a.JSON:
		for _, r := range results {
			if err := a.showApplied(r); err != nil {
				return err
			}
		}
		return nil
	case single && len(results) == 1:
		return a.Print(results[0])
	case single:
		return nil // it failed
	}
	return a.Print(map[string][]applied{"jobs": results})
}

func applyFile(ctx context.Context, c *client.Client, f jobfile.File, owner string, dryRun bool) (applied, error) {
	id := f.Definition.ID
	result := applied{ID: id, Result: "changed", DryRun: dryRun, Changes: []appliedChange{}, Warnings: []string{}}
	before, err := c.Job(ctx, id)
	if client.Gone(err) {
		result.Result, err = "created", nil
	}
	if err != nil {
		return result, err
	}
	if result.Result == "changed" && !owns(owner, before.Labels) {
		return result, cli.Wrong("%s: the stored job %s does not have the label of --owner %s; give the job another id, or set its label first", display.Clean(f.Name), id, owner)
	}
	changes, err := job.Diff(before.Definition, f.Definition)
	if err != nil {
		return result, err
	}
	for _, change := range changes {
		result.Changes = append(result.Changes, appliedChange{change.Field, json.RawMessage(change.Before), json.RawMessage(change.After)})
	}
	result.Version, result.NextAt = before.Version, before.NextAt
	if len(changes) == 0 {
		result.Result, result.Warnings = "unchanged", append(result.Warnings, before.Warnings...)
		return result, nil
	}
	put := c.PutJob
	if dryRun {
		put = c.PreviewJob
	}
	after, err := put(ctx, id, f.Document, f.ContentType(), before.Tag)
	result.Version, result.NextAt, result.Warnings = after.Version, after.NextAt, append(result.Warnings, after.Warnings...)
	return result, err
}

func (a *app) showApplied(r applied) error {
	head := r.Result
	if r.DryRun && r.Result != "unchanged" {
		head = map[string]string{"created": "would create", "changed": "would change", "deleted": "would delete"}[r.Result]
	}
	text := head + " " + r.ID
	if r.Version > 0 {
		text += fmt.Sprintf(", version %d", r.Version)
	}
	if !r.NextAt.IsZero() {
		text += ", next firing " + a.Moment(r.NextAt)
	}
	for _, change := range r.Changes {
		text += "\n  " + display.Clean(job.Change{Field: change.Field, Before: string(change.Before), After: string(change.After)}.String())
	}
	return a.Say("%s\n", text)
}

// withoutStored returns the warnings about a file without those about jobs that the same command
// stores.
func withoutStored(warnings []string, f jobfile.File, files []jobfile.File) []string {
	for i, after := range f.Definition.After {
		if slices.ContainsFunc(files, func(g jobfile.File) bool { return g.Definition.ID == after.Job }) {
			warnings = slices.DeleteFunc(warnings, func(w string) bool { return w == job.UnknownAfter(i, after.Job) })
		}
	}
	return warnings
}

// warn notes the warnings about a file.
func (a *app) warn(f jobfile.File, warnings []string) {
	for _, warning := range warnings {
		a.Note("%s: warning: %s", f.Name, warning)
	}
}
