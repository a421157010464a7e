package command

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/proof/localstack/deployment"
	"github.com/sortie-dev/sortie/local/proof/localstack/fixtures"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// The arguments with which a machine runs this program.
const (
	WordWorker     = "worker"
	WordSupervisor = supervisor.Command
)

func (a *app) machines() *cobra.Command {
	return &cobra.Command{
		Use:   "machines",
		Short: "Serve the machines and the sample collection that a deployment uses, until Ctrl-C",
		Long: `Serve the Machines API that what is deployed calls, whose machines are processes of
this host, and the sample collection that the export worker reads. Ctrl-C stops
both.`,
		Args: cobra.NoArgs,
		RunE: does(func(ctx context.Context) error {
			p, err := a.place()
			if err != nil {
				return err
			}
			around, err := fixtures.Start(ctx, fixtures.Config{
				Machines: p.above(machinesAbove), Source: p.above(sourceAbove), Token: deployment.MachinesToken,
				Dir: filepath.Join(p.server.Dir, "machines"), Clock: a.Clock, Log: slog.New(slog.NewTextHandler(a.Stderr, nil)),
				Worker: []string{a.Executable, WordWorker}, Supervisor: []string{a.Executable, WordSupervisor},
				Wrap: true,
			})
			if err != nil {
				return err
			}
			a.say("machines on http://%s, the sample collection on http://%s", p.above(machinesAbove), p.above(sourceAbove))
			<-ctx.Done()
			return around.Stop(context.WithoutCancel(ctx))
		}),
	}
}
