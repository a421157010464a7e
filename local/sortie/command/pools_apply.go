package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
)

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
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		text, err := a.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := jobfile.ReadPool(file, text)
		if err != nil {
			return err
		}
		server, err := a.Client()
		if err != nil {
			return err
		}
		stored, err := storedPool(ctx, server, f.Pool.ID)
		if err != nil {
			return err
		}
		p, err := server.PutPool(ctx, f.Pool.ID, f.Pool.PoolDefinition, stored.Tag)
		if err != nil {
			return f.Explained(err)
		}
		return a.applied(p, stored)
	})
	return c
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
	return a.Result(p, "%s %s: %s, %s slots, queue of %s%s\n", what, p.ID, a.Admission(p.Pool), display.Bound(p.Limit), display.Bound(p.QueueLimit), display.Placement(p.Pool))
}
