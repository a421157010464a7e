package operate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/stage"
)

// stageName matches the names of stages.
var stageName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// tableName matches the names of tables (DynamoDB naming rules).
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

func (a *Operator) stage() *cobra.Command {
	return cli.Group("stage", "Operate a stage on AWS", a.stageDoctor(), a.stageCheck(), a.stageDrain(), a.stageOpen(), a.stageRestore(), a.stageClaim(), a.stageEmpty())
}

// stageFlags are the common flags of commands for a stage.
type stageFlags struct{ name, settings string }

func (f *stageFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "stage", "", "name of the deployed stage (required)")
	defineSettings(c, &f.settings)
	argument.Require(c, "stage")
	c.Args = func(cmd *cobra.Command, args []string) error {
		return errors.Join(argument.Exactly()(cmd, args), argument.Required(cmd))
	}
}

// defineSettings adds the flag for the settings file of stages.
func defineSettings(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "settings", "infra/cdk.json", "file with the settings of stages, for the region")
}

// find returns the deployed stage and the settings. It uses region if it is not empty, or else
// the region in the stage's settings, or else the region of the credentials.
func (a *Operator) find(ctx context.Context, f stageFlags, region string) (*stage.Stage, *stage.Settings, error) {
	if !stageName.MatchString(f.name) {
		return nil, nil, cli.Wrong("--stage: malformed name %q, want 1 to 20 lower-case letters, digits and hyphens", f.name)
	}
	settings, err := stage.ReadSettings(f.settings)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := a.AWS(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot load the AWS configuration: %w", err)
	}
	for _, each := range []string{settings.Region(f.name), region} {
		if each != "" {
			cfg.Region = each
		}
	}
	found, err := stage.Find(ctx, cfg, f.name, a.Clock)
	if errors.Is(err, stage.ErrNoStack) && region == "" {
		err = cli.Wrong("%w", err)
	}
	return found, settings, err
}

func (a *Operator) stageCheck() *cobra.Command {
	var flags stageFlags
	var allowed []string
	assembly := ""
	c := &cobra.Command{
		Use:   "check",
		Short: "Find what a deployment would take away",
		Long: `Compare the template that "make synth" wrote with the deployed one, and fail if the
deployment would take away data, keys, names, protections or alarms. "make deploy"
runs it first, and deploys the same template.

Each kind has a word that permits it: ` + strings.Join(stage.Words(), ", ") + `.`,
		Example: "  sortie stage check --stage prod\n  sortie stage check --stage prod --allow-removal domain,alarmEmail",
	}
	flags.add(c)
	c.Flags().StringVar(&assembly, "assembly", "infra/.cdk/out", "folder that \"make synth\" wrote")
	c.Flags().StringSliceVar(&allowed, "allow-removal", nil, "words for what may be taken away")
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		for _, word := range allowed {
			if !slices.Contains(stage.Words(), word) {
				return cli.Wrong("--allow-removal: unknown word %q%s, want some of %s", word, argument.Similar(word, stage.Words()), strings.Join(stage.Words(), ", "))
			}
		}
		planned, err := stage.ReadAssembly(assembly, flags.name)
		if err != nil {
			return err
		}
		deployed, _, err := a.find(ctx, flags, planned.Region)
		if errors.Is(err, stage.ErrNoStack) {
			a.Note("sortie-%s is not deployed yet.", flags.name)
			return nil
		}
		if err != nil {
			return err
		}
		removals := stage.Removals(deployed.Template, planned.Template)
		if a.JSON {
			if err := a.Print(removals); err != nil {
				return err
			}
		}
		for _, r := range removals {
			if slices.Contains(allowed, r.Word) {
				a.Note("Permitted: %s: %s.", r.Word, r.What)
			}
		}
		return stage.Check(removals, allowed)
	})
	return c
}

func (a *Operator) stageDrain() *cobra.Command {
	var flags stageFlags
	wait := false
	c := &cobra.Command{
		Use:   "drain",
		Short: "Accept no new exports, and let runs finish",
		Long: `Refuse new exports with 503 until "sortie stage open". Running and queued runs
finish, and a deployment changes nothing about it. A failed run can still be
retried by its client.`,
		Example: "  sortie stage drain --stage prod --wait",
	}
	flags.add(c)
	c.Flags().BoolVar(&wait, "wait", false, "wait until no run is left")
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		s, _, err := a.find(ctx, flags, "")
		if err != nil {
			return err
		}
		if err := s.Drain(ctx); err != nil {
			return err
		}
		if wait {
			if err := s.AwaitIdle(ctx, func(running int) { a.Note("%d runs are left.", running) }); err != nil {
				return err
			}
		}
		running, err := s.Running(ctx)
		if err != nil {
			return err
		}
		return a.Result(map[string]any{"stage": s.Name, "running": running}, "%s is drained; %d runs are left.\n", s.Name, running)
	})
	return c
}

func (a *Operator) stageOpen() *cobra.Command {
	return a.stageChange("open", "Accept new exports again after a drain", "", "%s is open.\n", (*stage.Stage).Open)
}

func (a *Operator) stageClaim() *cobra.Command {
	return a.stageChange("claim", "Destroy machines that have no record", `Let the sweep destroy machines that have no record in the table. It keeps them, and
fails, after the table was emptied or restored, because their runs may have been
lost. A sweep that sees no such machine does the same by itself.`,
		"Machines of %s without a record are destroyed by the next sweep.\n", (*stage.Stage).Claim)
}

// stageChange returns a command that changes a stage with one call.
func (a *Operator) stageChange(use, short, long, done string, do func(*stage.Stage, context.Context) error) *cobra.Command {
	var flags stageFlags
	c := &cobra.Command{Use: use, Short: short, Long: long, Example: "  sortie stage " + use + " --stage prod"}
	flags.add(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		s, _, err := a.find(ctx, flags, "")
		if err != nil {
			return err
		}
		if err := do(s, ctx); err != nil {
			return err
		}
		return a.Result(map[string]any{"stage": s.Name}, done, s.Name)
	})
	return c
}

func (a *Operator) stageEmpty() *cobra.Command {
	var flags stageFlags
	c := &cobra.Command{
		Use:   "empty",
		Short: "Delete all outputs of a stage that is to be destroyed",
		Long: `Delete every version of every object of the stage's buckets, and unfinished
uploads: CloudFormation deletes only empty buckets. New exports are refused from then
on. "make destroy" runs it first. A stage that retains its data is refused.`,
		Example: "  sortie stage empty --stage dev",
	}
	flags.add(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		s, _, err := a.find(ctx, flags, "")
		if err != nil {
			return err
		}
		deleted, err := s.Empty(ctx)
		if err != nil {
			return err
		}
		return a.Result(map[string]any{"stage": s.Name, "deleted": deleted}, "Deleted %d objects of %s.\n", deleted, s.Name)
	})
	return c
}

func (a *Operator) stageRestore() *cobra.Command {
	var flags stageFlags
	at, target := "", ""
	c := &cobra.Command{
		Use:   "restore",
		Short: "Restore the table of a stage to an earlier moment",
		Long: `Restore the table to a new one at a moment of the last 35 days, and add what
DynamoDB does not restore: the stream, the time to live, point-in-time recovery,
deletion protection and tags. Then write the new table's stream into the stage's
entry of --settings, with which this deployment and every later one uses it.

The present table stays. Run the command again to continue an interrupted one.
Drain the stage before, and deploy it afterwards with ALLOW_REMOVAL=table (the
first time) or ALLOW_REMOVAL=tableStream.`,
		Example: "  sortie stage restore --stage prod --at 2026-11-22T09:00:00Z --to sortie-prod-restored",
	}
	flags.add(c)
	c.Flags().StringVar(&at, "at", "", "the moment, such as 2026-11-22T09:00:00Z; by default the latest possible one")
	c.Flags().StringVar(&target, "to", "", "name of the new table (required)")
	argument.Require(c, "to")
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		r := stage.Restoration{Target: target}
		if !tableName.MatchString(target) {
			return cli.Wrong("--to: malformed name %q, want 3 to 255 letters, digits, '_', '.' and '-'", target)
		}
		if at != "" {
			moment, err := time.Parse(time.RFC3339, at)
			if err != nil {
				return cli.Wrong("--at: malformed time %q, want one such as 2026-11-22T09:00:00Z", at)
			}
			r.At = moment
		}
		s, settings, err := a.find(ctx, flags, "")
		if err != nil {
			return err
		}
		stream, err := s.Restore(ctx, r, func(step string) { a.Note("%s", step) })
		if err != nil {
			return err
		}
		if err := settings.Set(s.Name, "tableStream", stream); err != nil {
			return fmt.Errorf("the table is restored; set stages.%s.tableStream to %s: %w", s.Name, stream, err)
		}
		a.Note("Wrote stages.%s.tableStream to %s.", s.Name, flags.settings)
		return a.Result(map[string]any{"stage": s.Name, "tableStream": stream}, "%s\n", stream)
	})
	return c
}
