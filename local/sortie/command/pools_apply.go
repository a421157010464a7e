package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/job"
)

// poolDocument is a definition of a pool with the pool's id.
type poolDocument struct {
	ID string `json:"id"`
	contract.PoolDefinition
}

func (a *app) poolsApply() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Create a pool or change its definition",
		Long: `Create a pool or change its definition: its runner, the settings of the runner, and its
limits. What the file leaves out has the default of the server. A new runner applies to
machines that are created from then on. The command is idempotent.

warm keeps machines of Fly that were created and stopped, for starts that need no creation:
  min, max         machines that are kept, and all that no run has claimed
  image, cpus, memoryMb
                   of those of min; otherwise those of the deployment
  aheadSeconds     how long before each firing of a job a machine is created for it
  maxAgeSeconds    when a machine that no run has claimed is replaced; a day without it
  after            destroy (default) or recycle: what follows the run of a machine
A machine is also replaced when the tag of its image leads to another one. A recycled machine
waits, without the configuration of its run, for another run of the pool, up to max machines
and until maxAgeSeconds after its creation. One whose program did not exit with code 0 is
destroyed.`,
		Example: `  sortie pools apply -f pool.yaml

  # pool.yaml
  id: europe
  limit: 20
  runner: fly
  settings:
    regions: [ams, fra]
  warm: {min: 2, max: 10, aheadSeconds: 300}`,
	}
	c.Flags().StringVarP(&file, "file", "f", "", `definition of the pool in YAML or JSON, "-" for standard input (required)`)
	argument.Require(c, "file")
	c.RunE = does(func(ctx context.Context, _ []string) error {
		text, err := a.readFile(file)
		if err != nil {
			return err
		}
		f, err := readPool(file, text)
		if err != nil {
			return err
		}
		server, err := a.client()
		if err != nil {
			return err
		}
		stored, err := storedPool(ctx, server, f.document.ID)
		if err != nil {
			return err
		}
		p, err := server.PutPool(ctx, f.document.ID, f.document.PoolDefinition, stored.Tag)
		if err != nil {
			return f.explained(err)
		}
		return a.applied(p, stored)
	})
	return c
}

// poolFile is a pool definition that was read from a file.
type poolFile struct {
	name     string
	lines    job.Document
	document poolDocument
}

// readPool parses the document of a pool. Fields that this version does not know are errors,
// even if the server knows them.
func readPool(name string, text []byte) (poolFile, error) {
	f := poolFile{name: name}
	var problems []job.Problem
	f.lines, problems = job.Decode(text, &f.document)
	missing := func(is bool, field, want string) {
		if is && !slices.ContainsFunc(problems, func(p job.Problem) bool { return p.Field == field || p.Field == "" }) {
			problems = append(problems, job.Problem{Field: field, Line: f.lines.LineOf(""), Problem: "missing " + field + ", want " + want})
		}
	}
	missing(f.document.ID == "", "id", "the name of the pool")
	missing(f.document.Limit == nil, "limit", "the number of slots, or 0 for no limit")
	if len(problems) > 0 {
		return f, f.wrong(problems)
	}
	return f, nil
}

// wrong returns a usage error with the problems of the file, one per line, formatted like a
// compiler.
func (f poolFile) wrong(problems []job.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = jobfile.File{Name: f.name}.At(p.Line, p.Field, p.Problem)
	}
	return wrong("%s", strings.Join(lines, "\n"))
}

// explained adds the file name and line numbers to the problems in a server's error.
func (f poolFile) explained(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Problems) == 0 {
		return err
	}
	problems := make([]job.Problem, len(p.Problems))
	for i, each := range p.Problems {
		problems[i] = job.Problem{Field: each.Field, Line: f.lines.LineOf(each.Field), Problem: each.Problem}
	}
	slices.SortStableFunc(problems, func(a, b job.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return f.wrong(problems)
}

// applied prints a pool and its changes.
func (a *app) applied(p, before client.Pool) error {
	what := "unchanged"
	switch {
	case before.Tag == "":
		what = "created"
	case before.Tag != p.Tag:
		what = "changed"
	}
	return a.result(p, "%s %s: %s, %s slots, queue of %s%s\n", what, p.ID, a.Admission(p.Pool), display.Bound(p.Limit), display.Bound(p.QueueLimit), display.Placement(p.Pool))
}
