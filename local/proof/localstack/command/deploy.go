package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/proof/localstack/deployment"
)

// stage is the stage that is deployed in LocalStack.
const stage = "local"

// machinesAbove and sourceAbove are the ports of the Machines API and of the sample collection,
// relative to the server's port.
const machinesAbove, sourceAbove = 1000, 1001

// above returns the address whose port is the server's port plus n.
func (p place) above(n int) string { return "127.0.0.1:" + strconv.Itoa(p.server.Port+n) }

// packages returns the path of the file with the versions of the CDK.
func (p place) packages() string { return filepath.Join(p.repository, "infra", "package.json") }

// deployment returns the deployment for a place.
func (a *app) deployment(ctx context.Context, p place) (deployment.Deployment, error) {
	d := deployment.Deployment{
		Repository: p.repository, Work: filepath.Join(p.server.Dir, "deployment"), Server: p.server.URL(), OS: deployment.HostOS,
		Tools: p.cache.Tools, Environ: p.cache.Environ, Clock: a.Clock, Say: a.say,
		Stage: stage, Machines: "http://" + p.above(machinesAbove),
		Settings: map[string]string{"SOURCE_API_URL": "http://" + p.above(sourceAbove)},
	}
	if p.docker {
		d.OS = "linux"
	}
	var err error
	if d.Home, err = p.cache.Home(); err != nil {
		return d, err
	}
	d.CDK, err = p.cache.CDK(ctx, p.packages())
	return d, err
}

func (a *app) deploy() *cobra.Command {
	var settings, stackSettings []string
	release := ""
	c := &cobra.Command{
		Use:   "deploy",
		Short: "Build what infra describes and deploy it to the running LocalStack",
		Long: `Build the functions for this machine's processor, deploy what infra describes to the
LocalStack that runs, and fill its secrets. It may be called again: what has
changed is deployed over what is there.

The functions call a Machines API on the port 1000 above LocalStack's, and workers
read a collection on the port after it: "localstack machines" serves both.`,
		Example: "  localstack deploy\n  localstack deploy --setting SORTIE_RETRY_DELAY=1s",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringArrayVar(&settings, "setting", nil, "set NAME=VALUE of Sortie's settings (repeatable)")
	c.Flags().StringArrayVar(&stackSettings, "stack", nil, "set KEY=VALUE of the stack's settings (repeatable)")
	c.Flags().StringVar(&release, "release", "", "deploy the last build again as a release of this name")
	c.RunE = does(func(ctx context.Context) error {
		p, err := a.equipped(ctx)
		if err != nil {
			return err
		}
		if !p.server.Running(ctx) {
			return fmt.Errorf("no LocalStack of this cache runs on port %d: start it with \"make localstack\"", p.server.Port)
		}
		d, err := a.deployment(ctx, p)
		if err != nil {
			return err
		}
		d.Release = release
		d.Stack = map[string]string{}
		for _, flag := range []struct {
			name  string
			given []string
			to    map[string]string
		}{{"setting", settings, d.Settings}, {"stack", stackSettings, d.Stack}} {
			for _, each := range flag.given {
				name, value, found := strings.Cut(each, "=")
				if !found {
					return fmt.Errorf("--%s %q: want NAME=VALUE", flag.name, each)
				}
				flag.to[name] = value
			}
		}
		outputs, err := d.Run(ctx)
		if err != nil {
			return err
		}
		if err := d.Fill(ctx); err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Stdout, outputs["URL"])
		return err
	})
	return c
}

func (a *app) destroy() *cobra.Command {
	return &cobra.Command{
		Use:   "destroy",
		Short: "Remove the deployment with its data",
		Args:  cobra.NoArgs,
		RunE: does(func(ctx context.Context) error {
			p, err := a.equipped(ctx)
			if err != nil {
				return err
			}
			d, err := a.deployment(ctx, p)
			if err != nil {
				return err
			}
			return d.Destroy(ctx)
		}),
	}
}

func (a *app) env() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print the variables with which other programs find the deployment",
		Long: `Print the variables by which other programs find LocalStack and what is deployed
there: those of every AWS client, SORTIE_URL and SORTIE_TOKEN of the command line
"sortie", and what the tests read.`,
		Example: `  export $(go run ./local/proof/localstack env)`,
		Args:    cobra.NoArgs,
		RunE: does(func(ctx context.Context) error {
			p, err := a.place()
			if err != nil {
				return err
			}
			d := deployment.Deployment{Work: filepath.Join(p.server.Dir, "deployment"), Stage: stage}
			outputs, err := d.Outputs()
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, each := range variables(p, outputs) {
				if _, err := fmt.Fprintln(a.Stdout, each); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// variables returns the environment of tests. outputs is nil if nothing is deployed.
func variables(p place, outputs deployment.Outputs) []string {
	list := deployment.Client(p.server.URL())
	if outputs == nil {
		return list
	}
	return append(list,
		"SORTIE_URL="+outputs["URL"], "SORTIE_TOKEN="+deployment.ClientToken, "SORTIE_STAGE="+stage,
		"SORTIE_MACHINES_ADDR="+p.above(machinesAbove), "SORTIE_SOURCE_ADDR="+p.above(sourceAbove), "SORTIE_MACHINES_TOKEN="+deployment.MachinesToken,
		"SORTIE_TABLE="+outputs["TableName"], "SORTIE_STATE_MACHINE="+outputs["StateMachineArn"], "SORTIE_BUS="+outputs["BusName"],
		"SORTIE_UPLOADS_BUCKET="+outputs["UploadsBucket"], "SORTIE_ACCEPTED_BUCKET="+outputs["AcceptedBucket"],
		"SORTIE_LOCALSTACK_DIR="+p.server.Dir,
	)
}
