package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) pools() *cobra.Command {
	return a.Resources("pools", "Look at the pools of runs, and change them",
		a.poolsList(), a.poolsShow(), a.poolsGuests(), a.poolsApply(), a.poolsSet(), a.poolsDrain(), a.poolsResume(), a.poolsReload(), a.poolsDelete())
}

func (a *app) poolsList() *cobra.Command {
	list := func(ctx context.Context, c *client.Client, _ []string) (contract.PoolList, error) {
		return c.Pools(ctx)
	}
	return &cobra.Command{
		Use: "list", Short: "List the pools, by id",
		Example: "  sortie pools list\n  sortie pools list --json",
		RunE: cli.Printed(a.App, list, func(list contract.PoolList) error {
			t := display.NewTable("POOL", "HELD", "LIMIT", "QUEUED", "QUEUE LIMIT", "STATE")
			for _, p := range list.Pools {
				t.Row(p.ID, fmt.Sprint(p.Held), display.Bound(p.Limit), fmt.Sprint(p.Queued), display.Bound(p.QueueLimit), a.Admission(p))
			}
			return a.Table(list, t)
		}),
	}
}

func (a *app) poolsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show POOL", Short: "Show a pool and its state",
		Example: "  sortie pools show default",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.Pool(ctx, args[0])
			if err != nil {
				return err
			}
			health, err := c.PoolHealth(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Result(struct {
				contract.Pool
				Health contract.PoolHealth `json:"health"`
			}{p.Pool, health}, "%s\n", a.Times.Pool(p.Pool, health))
		}),
	}
}

func (a *app) poolsGuests() *cobra.Command {
	var day string
	cmd := &cobra.Command{
		Use: "guests POOL", Short: "Show what the tenants to whom a pool is offered use of it",
		Example: "  sortie pools guests gpu\n  sortie pools guests gpu --day 2026-11-28",
	}
	cmd.Flags().StringVar(&day, "day", "", "a day in UTC; by default today")
	read := func(ctx context.Context, c *client.Client, args []string) (contract.PoolGuests, error) {
		return c.PoolGuests(ctx, args[0], day)
	}
	cmd.RunE = cli.Printed(a.App, read, func(list contract.PoolGuests) error {
		if len(list.Guests) == 0 && !a.JSON {
			fmt.Fprintln(a.Stderr, "the pool is offered to no tenant; sharing of its definition offers it")
		}
		t := display.NewTable("TENANT", "POOL", "HELD", "SLOTS", "QUEUED", "WEIGHT", "TASKS", "TOKENS", "TOKENS/DAY")
		for _, g := range list.Guests {
			t.Row(g.Tenant, g.Pool, fmt.Sprint(g.Held), fmt.Sprint(g.Slots), fmt.Sprint(g.Queued), fmt.Sprint(*g.Weight),
				fmt.Sprint(g.Tasks), fmt.Sprint(g.Tokens), display.Bound(int(g.TokensPerDay)))
		}
		return a.Table(list, t)
	})
	return cmd
}

func (a *app) poolsSet() *cobra.Command {
	var limit, queueLimit int
	cmd := &cobra.Command{
		Use: "set POOL", Short: "Create a pool or change its limits",
		Long: `Create a pool or change its limits. A limit that is not given stays; a new pool needs
--limit, and has the queue limit of the server without --queue-limit. A higher limit
starts queued runs at once, a lower one ends no run.`,
		Example: "  sortie pools set default --limit 4 --queue-limit 100\n  sortie pools set reports --limit 0",
	}
	flags := cmd.Flags()
	flags.IntVar(&limit, "limit", 0, "runs that hold a slot at the same time; 0 is no limit")
	flags.IntVar(&queueLimit, "queue-limit", 0, "queued runs at which new ones are refused; 0 is no limit")
	change := func(ctx context.Context, c *client.Client, args []string) (client.Pool, error) {
		if !flags.Changed("limit") && !flags.Changed("queue-limit") {
			return client.Pool{}, cli.Wrong("missing limit, want --limit, --queue-limit or both")
		}
		stored, err := storedPool(ctx, c, args[0])
		if err != nil {
			return stored, err
		}
		limits := contract.PoolDefinition{Runner: stored.Runner, Settings: stored.Settings, Fallback: stored.Fallback, Warm: stored.Warm, Engine: stored.Engine, Sharing: stored.Sharing, From: stored.From, Limit: &stored.Limit}
		if stored.From != nil {
			limits.Limit = nil // its owner sets it
		}
		if stored.Tag != "" {
			limits.QueueLimit = &stored.QueueLimit
		} else if !flags.Changed("limit") {
			return client.Pool{}, cli.Wrong("--limit: missing, want the limit of the new pool %s", args[0])
		}
		if flags.Changed("limit") {
			limits.Limit = &limit
		}
		if flags.Changed("queue-limit") {
			limits.QueueLimit = &queueLimit
		}
		return c.PutPool(ctx, args[0], limits, stored.Tag)
	}
	cmd.RunE = cli.Printed(a.App, change, a.showPool)
	return cmd
}

// storedPool reads a pool. It returns an empty tag if the pool does not exist.
func storedPool(ctx context.Context, c *client.Client, id string) (client.Pool, error) {
	p, err := c.Pool(ctx, id)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound && !problem.Foreign {
		return client.Pool{}, nil
	}
	return p, err
}

// showPool prints a changed pool.
func (a *app) showPool(p client.Pool) error {
	return a.Result(p, "%s: %s, %d of %s slots held, %d queued of %s\n", p.ID, a.Admission(p.Pool), p.Held, display.Bound(p.Limit), p.Queued, display.Bound(p.QueueLimit))
}

func (a *app) poolsDrain() *cobra.Command {
	var deadline time.Duration
	cmd := &cobra.Command{
		Use: "drain POOL", Short: "Stop the admission of a pool",
		Long: `Stop the admission of a pool. Runs stay in its queue, and those that hold a slot keep
it. With --deadline the workers that still run then are asked to end, and their runs wait
for another attempt until the pool is resumed. "sortie pools show" says what remains.`,
		Example: "  sortie pools drain default --deadline 10m",
	}
	flags := cmd.Flags()
	flags.DurationVar(&deadline, "deadline", 0, "time until the remaining workers are asked to end; by default never")
	change := func(ctx context.Context, c *client.Client, args []string) (client.Pool, error) {
		var drain contract.PoolDrain
		if flags.Changed("deadline") {
			if deadline < 0 || deadline%time.Second != 0 {
				return client.Pool{}, cli.Wrong("--deadline: %s, want whole seconds", deadline)
			}
			seconds := int(deadline / time.Second)
			drain.DeadlineSeconds = &seconds
		}
		return c.DrainPool(ctx, args[0], drain)
	}
	cmd.RunE = cli.Printed(a.App, change, a.showPool)
	return cmd
}

func (a *app) poolsResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume POOL", Short: "Admit runs to a drained pool again",
		Long:    "Admit runs to a drained pool again, and start queued ones. The command is idempotent.",
		Example: "  sortie pools resume default",
		RunE:    cli.Printed(a.App, cli.ByID((*client.Client).ResumePool), a.showPool),
	}
}

func (a *app) poolsReload() *cobra.Command {
	var model string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "reload POOL", Short: "Change the model of a pool of an engine",
		Long: `Change the model of a pool of an engine, and ask its replicas again what they can do.
Without --model only the latter. The pool admits nothing meanwhile. If some of its runs
have not ended after --wait, nothing is changed. Replicas that Sortie runs are replaced
afterwards, one after the other; without --model the others serve meanwhile.`,
		Example: "  sortie pools reload pool0 --model llama-3-8b --wait 20s",
	}
	cmd.Flags().StringVar(&model, "model", "", "a model of the catalog; by default the present one")
	cmd.Flags().DurationVar(&wait, "wait", 0, "time that the active runs of the pool get to end, at most 25s")
	change := func(ctx context.Context, c *client.Client, args []string) (client.Pool, error) {
		if wait < 0 || wait%time.Second != 0 {
			return client.Pool{}, cli.Wrong("--wait: %s, want whole seconds", wait)
		}
		return c.ReloadPool(ctx, args[0], contract.PoolReload{Model: model, DeadlineSeconds: int(wait / time.Second)})
	}
	cmd.RunE = cli.Printed(a.App, change, a.showPool)
	return cmd
}

func (a *app) poolsDelete() *cobra.Command {
	return a.Removal(&cobra.Command{
		Use: "delete POOL", Short: "Delete a pool without runs",
		Long:    "Delete a pool whose runs have all ended. The pool default cannot be deleted.",
		Example: "  sortie pools delete reports",
	}, "deleted", (*client.Client).DeletePool)
}
