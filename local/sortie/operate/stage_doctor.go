package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/local/sortie/stage/doctor"
)

// examination configures the checks of the doctor.
type examination struct {
	stageFlags
	assembly string
	skip     []string
}

func (a *Operator) stageDoctor() *cobra.Command {
	var x examination
	c := &cobra.Command{
		Use:   "doctor STAGE",
		Short: "Find what is left to do until a stage works",
		Long: `Check what a stage needs, in the order in which it is set up: settings, credentials,
the CDK's bootstrap, Lambda's concurrency, the stack, secrets, Fly apps, buckets and
their keys, the mail for alarms, certificate and domain, the canary and the API. What
the stage's settings do not use is not checked. Nothing is changed, and no secret is
printed.

Each check prints a line: ok, missing (it does not exist yet), wrong (it exists and
does not work) or unknown (the check could not be made). The line says what to do.

What the stage needs is read from the template that "make synth" wrote, or else from
the deployed one.

Exit codes:
  0    everything is ok
  1    there is something to do
  2    the command line is wrong`,
		Example: "  sortie stage doctor prod\n  sortie stage doctor prod --skip lifecycle --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if x.name != "" {
				return argument.Exactly()(cmd, args)
			}
			return argument.Exactly("STAGE")(cmd, args)
		},
	}
	c.Flags().StringVar(&x.name, "stage", "", "name of the stage, in the place of STAGE")
	defineSettings(c, &x.settings)
	c.Flags().StringVar(&x.assembly, "assembly", "infra/.cdk/out", "folder that \"make synth\" wrote")
	c.Flags().StringSliceVar(&x.skip, "skip", nil, "checks whose lines are left out: "+strings.Join(doctor.Checks(), ", "))
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			x.name = args[0]
		}
		for _, name := range x.skip {
			if !slices.Contains(doctor.Checks(), name) {
				return cli.Wrong("--skip: unknown check %q%s, want some of %s", name, argument.Similar(name, doctor.Checks()), strings.Join(doctor.Checks(), ", "))
			}
		}
		return a.examine(ctx, x)
	})
	return c
}

// examine makes the checks and prints their lines.
func (a *Operator) examine(ctx context.Context, x examination) error {
	if !stageName.MatchString(x.name) {
		return cli.Wrong("STAGE: malformed name %q, want 1 to 20 lower-case letters, digits and hyphens", x.name)
	}
	cfg, err := a.doctorConfig(ctx, x)
	if err != nil {
		return err
	}
	var all []doctor.Finding
	var failed error
	doctor.Run(ctx, cfg, func(f doctor.Finding) {
		name, _, _ := strings.Cut(f.Check, " ")
		if slices.Contains(x.skip, name) {
			return
		}
		all = append(all, f)
		if !a.JSON && failed == nil {
			failed = a.Say("%s\n", display.Clean(f.String()))
		}
	})
	if err := errors.Join(ctx.Err(), failed); err != nil {
		return err
	}
	left := 0
	for _, f := range all {
		if f.Status != doctor.OK {
			left++
		}
	}
	if a.JSON {
		if err := a.Print(map[string]any{"stage": x.name, "ok": left == 0, "checks": all}); err != nil {
			return err
		}
	}
	if left > 0 {
		return cli.Advised{Err: fmt.Errorf("%d of %d checks are not ok", left, len(all)), Code: cli.ExitFailed}
	}
	return nil
}

func (a *Operator) doctorConfig(ctx context.Context, x examination) (doctor.Config, error) {
	settings, err := stage.ReadSettings(x.settings)
	if err != nil {
		return doctor.Config{}, err
	}
	assembly, err := stage.ReadAssembly(x.assembly, x.name)
	absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, stage.ErrOtherStage)
	if err != nil && !absent {
		return doctor.Config{}, err
	}
	cfg := doctor.Config{
		Stage: x.name, Settings: x.settings, Entry: settings.Has(x.name), Account: settings.Account(x.name), Region: settings.Region(x.name),
		HTTP: &http.Client{}, DNS: net.DefaultResolver, Clock: a.Clock,
	}
	if a.Resolver != nil {
		cfg.DNS = a.Resolver
	}
	if !absent {
		cfg.Assembly, cfg.Stale = &assembly, settings.Changed.After(assembly.Written)
		cfg.Account, cfg.Region = cmp.Or(cfg.Account, assembly.Account), cmp.Or(cfg.Region, assembly.Region)
	}
	cfg.AWS, cfg.AWSErr = a.AWS(ctx)
	return cfg, nil
}
