package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
)

func (a *app) pools() *cobra.Command {
	commands := []*cobra.Command{a.poolsList(), a.poolsShow(), a.poolsApply(), a.poolsSet(), a.poolsDrain(), a.poolsResume(), a.poolsReload(), a.poolsDelete()}
	for _, c := range commands {
		a.serverFlags(c)
	}
	return group("pools", "Look at the pools of runs, and change them", commands...)
}

func (a *app) poolsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the pools, by id",
		Example: "  sortie pools list\n  sortie pools list --json",
		Args:    exactly(),
		RunE: does(func(ctx context.Context, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Pools(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(list)
			}
			t := display.NewTable("POOL", "HELD", "LIMIT", "QUEUED", "QUEUE LIMIT", "STATE")
			for _, p := range list.Pools {
				t.Row(p.ID, fmt.Sprint(p.Held), bound(p.Limit), fmt.Sprint(p.Queued), bound(p.QueueLimit), a.admission(p))
			}
			_, err = t.WriteTo(a.Stdout)
			return err
		}),
	}
}

func (a *app) poolsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show POOL", Short: "Show a pool and its state",
		Example: "  sortie pools show default",
		Args:    exactly("POOL"),
		RunE: does(func(ctx context.Context, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			p, err := c.Pool(ctx, args[0])
			if err != nil {
				return err
			}
			health, err := c.PoolHealth(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(struct {
					contract.Pool
					Health contract.PoolHealth `json:"health"`
				}{p.Pool, health})
			}
			text := fmt.Sprintf("%s: %s%s\nslots: %d of %s held, %d with a machine\nqueue: %d of %s", p.ID, a.admission(p.Pool), placement(p.Pool),
				health.Held, bound(p.Limit), health.Machines, health.Queued, bound(p.QueueLimit))
			if wait := health.Metrics.LongestWaitSeconds; wait > 0 {
				text += ", the first for " + (time.Duration(wait) * time.Second).String()
			}
			for _, r := range health.Replicas {
				text += "\n" + a.replica(r)
			}
			text += machineStates(health) + warmCounts(health.WarmMachines) + a.startFigures(health.Metrics) + expectedWait(health.Metrics.ExpectedWait) + a.remaining(p.Pool, health)
			if p.Version > 0 {
				text += fmt.Sprintf("\nversion %d, of %s, by %s", p.Version, a.moment(p.UpdatedAt), display.Clean(p.UpdatedBy))
			}
			if e := health.LastError; e != nil {
				text += fmt.Sprintf("\nlast error: %s: %s", e.Code, display.Clean(e.Message))
			}
			text += a.poolErrors(health.Errors)
			return a.say("%s\n", text)
		}),
	}
}

func (a *app) poolsSet() *cobra.Command {
	var limit, queueLimit int
	c := &cobra.Command{
		Use: "set POOL", Short: "Create a pool or change its limits",
		Long: `Create a pool or change its limits. A limit that is not given stays; a new pool needs
--limit, and has the queue limit of the server without --queue-limit. A higher limit
starts queued runs at once, a lower one ends no run.`,
		Example: "  sortie pools set default --limit 4 --queue-limit 100\n  sortie pools set reports --limit 0",
		Args:    exactly("POOL"),
	}
	flags := c.Flags()
	flags.IntVar(&limit, "limit", 0, "runs that hold a slot at the same time; 0 is no limit")
	flags.IntVar(&queueLimit, "queue-limit", 0, "queued runs at which new ones are refused; 0 is no limit")
	c.RunE = does(func(ctx context.Context, args []string) error {
		if !flags.Changed("limit") && !flags.Changed("queue-limit") {
			return wrong("missing limit, want --limit, --queue-limit or both")
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		stored, err := storedPool(ctx, client, args[0])
		if err != nil {
			return err
		}
		limits := contract.PoolDefinition{Runner: stored.Runner, Settings: stored.Settings, Fallback: stored.Fallback, Warm: stored.Warm, Engine: stored.Engine, Limit: &stored.Limit}
		if stored.Tag != "" {
			limits.QueueLimit = &stored.QueueLimit
		} else if !flags.Changed("limit") {
			return wrong("--limit: missing, want the limit of the new pool %s", args[0])
		}
		if flags.Changed("limit") {
			limits.Limit = &limit
		}
		if flags.Changed("queue-limit") {
			limits.QueueLimit = &queueLimit
		}
		p, err := client.PutPool(ctx, args[0], limits, stored.Tag)
		if err != nil {
			return err
		}
		return a.showPool(p)
	})
	return c
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
	if a.json {
		return a.print(p)
	}
	return a.say("%s: %s, %d of %s slots held, %d queued of %s\n", p.ID, a.admission(p.Pool), p.Held, bound(p.Limit), p.Queued, bound(p.QueueLimit))
}

func (a *app) poolsDrain() *cobra.Command {
	var deadline time.Duration
	c := &cobra.Command{
		Use: "drain POOL", Short: "Stop the admission of a pool",
		Long: `Stop the admission of a pool. Runs stay in its queue, and those that hold a slot keep
it. With --deadline the workers that still run then are asked to end, and their runs wait
for another attempt until the pool is resumed. "sortie pools show" says what remains.`,
		Example: "  sortie pools drain default --deadline 10m",
		Args:    exactly("POOL"),
	}
	c.Flags().DurationVar(&deadline, "deadline", 0, "time until the remaining workers are asked to end; by default never")
	c.RunE = does(func(ctx context.Context, args []string) error {
		var drain contract.PoolDrain
		if c.Flags().Changed("deadline") {
			if deadline < 0 || deadline%time.Second != 0 {
				return wrong("--deadline: %s, want whole seconds", deadline)
			}
			seconds := int(deadline / time.Second)
			drain.DeadlineSeconds = &seconds
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		p, err := client.DrainPool(ctx, args[0], drain)
		if err != nil {
			return err
		}
		return a.showPool(p)
	})
	return c
}

func (a *app) poolsResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume POOL", Short: "Admit runs to a drained pool again",
		Long:    "Admit runs to a drained pool again, and start queued ones. The command is idempotent.",
		Example: "  sortie pools resume default",
		Args:    exactly("POOL"),
		RunE: does(func(ctx context.Context, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			p, err := c.ResumePool(ctx, args[0])
			if err != nil {
				return err
			}
			return a.showPool(p)
		}),
	}
}

func (a *app) poolsReload() *cobra.Command {
	var model string
	var wait time.Duration
	c := &cobra.Command{
		Use: "reload POOL", Short: "Change the model of a pool of an engine",
		Long: `Change the model of a pool of an engine, and ask its replicas again what they can do.
Without --model only the latter. The pool admits nothing meanwhile. If some of its tasks
have not ended after --wait, nothing is changed. Replicas that Sortie runs are replaced
afterwards, one after the other; without --model the others serve meanwhile.`,
		Example: "  sortie pools reload pool0 --model llama-3-8b --wait 20s",
		Args:    exactly("POOL"),
	}
	c.Flags().StringVar(&model, "model", "", "a model of the catalog; by default the present one")
	c.Flags().DurationVar(&wait, "wait", 0, "time for which the tasks of the pool may still run, at most 25s")
	c.RunE = does(func(ctx context.Context, args []string) error {
		if wait < 0 || wait%time.Second != 0 {
			return wrong("--wait: %s, want whole seconds", wait)
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		p, err := client.ReloadPool(ctx, args[0], contract.PoolReload{Model: model, DeadlineSeconds: int(wait / time.Second)})
		if err != nil {
			return err
		}
		return a.showPool(p)
	})
	return c
}

func (a *app) poolsDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete POOL", Short: "Delete a pool without runs",
		Long:    "Delete a pool whose runs have all ended. The pool default cannot be deleted.",
		Example: "  sortie pools delete reports",
		Args:    exactly("POOL"),
		RunE: does(func(ctx context.Context, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.DeletePool(ctx, args[0]); err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]any{"deleted": args[0]})
			}
			return a.say("deleted %s\n", args[0])
		}),
	}
}
