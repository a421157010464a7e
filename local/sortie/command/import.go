package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/importer"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
)

// importFlags are the flags of the commands that convert the files of other programs.
type importFlags struct {
	out    string
	force  bool
	source importer.Source
}

func (a *app) imports() *cobra.Command {
	var f importFlags
	crontab := a.importOf("crontab", "Convert a crontab of a user or of the system", `Each line with a command becomes a job that runs it in a shell of this machine. The
format of the system, with users, is recognised by the name of the file (/etc/crontab,
/etc/cron.d/) or by the user root; --system says it, and --system=false the opposite.`, &f)
	crontab.Flags().BoolVar(&f.source.System, "system", false, "the lines have users, as in /etc/cron.d")
	crontab.Flags().StringVar(&f.source.TimeZone, "time-zone", "", "time zone of the schedules without CRON_TZ; by default that of this machine")
	return cli.Group("import", "Convert the jobs of other programs to job files",
		crontab,
		a.importOf("kubernetes", "Convert CronJobs and Jobs of Kubernetes", `The file has manifests in YAML or JSON, in several documents or lists. Objects of other
kinds are left out, with a note. Templates must be rendered first.`, &f),
		a.importOf("nomad", "Convert a batch job of Nomad", `The file is a job in HCL, with the driver docker, podman, exec or raw_exec. Variables
have their defaults; other expressions are copied.`, &f),
		a.importOf("github", "Convert a workflow of GitHub Actions", `The scripts of a job become one script. Actions, conditions and expressions
are not converted. A job without a container runs on this machine.`, &f),
	)
}

func (a *app) importOf(program, short, long string, f *importFlags) *cobra.Command {
	c := &cobra.Command{
		Use: program + " FILE", Short: short,
		Long: long + `

Standard output has the job files, as documents of one file. Comments name each field
that has no counterpart, and each that means something else. "-" is standard input.`,
		Example: "  sortie import " + program + " FILE > jobs.yaml\n  sortie import " + program + " FILE --out jobs/",
	}
	c.Flags().StringVar(&f.out, "out", "", "folder for the job files, one for each job; by default standard output")
	c.Flags().BoolVar(&f.force, "force", false, "replace existing files of --out")
	c.RunE = cli.Does(func(_ context.Context, args []string) (err error) {
		s := f.source
		s.User = c.Flags().Changed("system") && !s.System
		if s.Name = args[0]; s.TimeZone == "" {
			s.TimeZone = a.localZone()
		}
		if s.Text, err = a.ReadUpTo(s.Name, importer.SourceLimit+1); err != nil {
			return err
		}
		jobs, left, err := importer.Convert(program, s)
		if problem, ok := errors.AsType[*importer.Error](err); ok {
			return cli.Wrong("%s:%d: %s", s.Name, problem.Line, problem.Problem)
		}
		for _, part := range left {
			a.Note("%s:%d: %s", s.Name, part.Line, part.Problem)
		}
		return a.writeImported(jobs, f.out, f.force)
	})
	return c
}

// writeImported writes the job files to standard output, or to a folder. It writes none if one
// exists, unless replace is set.
func (a *app) writeImported(jobs []importer.Job, folder string, replace bool) error {
	if folder == "" && a.JSON {
		return a.Print(map[string]any{"jobs": jobs})
	}
	file := func(j importer.Job) string { return filepath.Join(folder, j.Definition.ID+".yaml") }
	for _, j := range jobs {
		if _, err := os.Lstat(file(j)); folder != "" && !replace && err == nil {
			return cli.Wrong("%s exists, want another folder, or --force to replace its files", file(j))
		}
	}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // G301: a folder of the user's project
			return fmt.Errorf("cannot create the folder %s: %w", folder, err)
		}
	}
	for i, j := range jobs {
		text, err := j.YAML()
		switch {
		case err != nil:
		case folder == "" && i > 0:
			err = a.Say("---\n%s", text)
		case folder == "":
			err = a.Say("%s", text)
		default:
			if replace { // a new file, so that no link is followed
				_ = os.Remove(file(j))
			}
			if err = jobfile.WriteNew(file(j), string(text)); err == nil && !a.JSON {
				err = a.Say("%s\n", file(j))
			}
		}
		if err != nil {
			return err
		}
	}
	if a.JSON {
		return a.Print(map[string]any{"jobs": jobs})
	}
	return nil
}
