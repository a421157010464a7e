package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
				t.Row(p.ID, fmt.Sprint(p.Held), bound(p.Limit), fmt.Sprint(p.Queued), bound(p.QueueLimit), admission(p))
			}
			_, err = t.WriteTo(a.Stdout)
			return err
		}),
	}
}

// bound formats a limit.
func bound(limit int) string {
	if limit == 0 {
		return "no limit"
	}
	return fmt.Sprint(limit)
}

// admission describes whether the pool admits runs.
func admission(p contract.Pool) string {
	switch {
	case !p.Draining:
		return "open"
	case p.DrainBy.IsZero():
		return "draining"
	}
	return "draining until " + moment(p.DrainBy)
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
			text := fmt.Sprintf("%s: %s%s\nslots: %d of %s held, %d with a machine%s\nqueue: %d of %s", p.ID, admission(p.Pool), placement(p.Pool),
				health.Held, bound(p.Limit), health.Machines, starting(health.Metrics), health.Queued, bound(p.QueueLimit))
			if wait := health.Metrics.LongestWaitSeconds; wait > 0 {
				text += ", the first for " + (time.Duration(wait) * time.Second).String()
			}
			for _, r := range health.Replicas {
				text += "\n" + replica(r)
			}
			text += warmCounts(health.WarmMachines) + startFigures(health.Metrics) + remaining(p.Pool, health)
			if p.Version > 0 {
				text += fmt.Sprintf("\nversion %d, of %s, by %s", p.Version, moment(p.UpdatedAt), display.Clean(p.UpdatedBy))
			}
			if e := health.LastError; e != nil {
				text += fmt.Sprintf("\nlast error: %s: %s", e.Code, display.Clean(e.Message))
			}
			return a.say("%s\n", text)
		}),
	}
}

// replica describes a replica of an engine.
func replica(r contract.ReplicaHealth) string {
	state := "ready"
	if !r.Ready {
		state = "not ready: " + display.Clean(r.Reason)
	}
	if r.EngineVersion != "" {
		state += ", version " + display.Clean(r.EngineVersion)
	}
	return fmt.Sprintf("replica %s: %d tasks, %s", display.Clean(r.ID), r.Held, state)
}

// starting describes the machines that do not run yet.
func starting(m contract.PoolMetrics) string {
	if m.StartingMachines == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them starting", m.StartingMachines)
}

// startFigures describes the starts of a pool.
func startFigures(m contract.PoolMetrics) (text string) {
	if m.StartP50Seconds != nil && m.StartP99Seconds != nil {
		text += fmt.Sprintf("\nstarts: %.1f s for half of %d, %.1f s for 99 of 100", *m.StartP50Seconds, m.MeasuredStarts, *m.StartP99Seconds)
	}
	if m.StartsPerSecond != nil {
		text += fmt.Sprintf("\nthe platform permits %.2g starts a second", *m.StartsPerSecond)
		if !m.NextStartAt.IsZero() {
			text += ", the next one at " + moment(m.NextStartAt)
		}
	}
	return text
}

// remaining lists the runs that the drain of a pool waits for.
func remaining(p contract.Pool, h contract.PoolHealth) (text string) {
	if !p.Draining {
		return ""
	}
	for _, r := range h.Remaining {
		text += fmt.Sprintf("\nremains: %s, %s since %s", r.RunID, r.State, moment(r.Since))
		if r.Cancelling {
			text += ", asked to end"
		}
	}
	if more := h.Held - len(h.Remaining); more > 0 {
		text += fmt.Sprintf("\nremains: %d more", more)
	}
	return text
}

// fallbackText describes a fallback of a pool.
func fallbackText(f contract.PoolFallback) string {
	text := f.Pool + " on " + strings.Join(f.On, ", ")
	if f.ThrottledSeconds != nil {
		text += " for " + (time.Duration(*f.ThrottledSeconds) * time.Second).String()
	}
	return text
}

// placement describes the runner of the pool, its settings and its fallbacks.
func placement(p contract.Pool) string {
	text := runner(p)
	for _, f := range p.Fallback {
		text += "\nfallback: " + fallbackText(f)
	}
	return text + warmText(p.Warm)
}

// warmText describes the settings of warm machines.
func warmText(w *contract.PoolWarm) string {
	if w == nil {
		return ""
	}
	text := fmt.Sprintf("\nwarm machines: %d to %d", w.Min, w.Max)
	if w.Image != "" {
		text += " of " + display.Clean(w.Image)
	}
	if w.AheadSeconds > 0 {
		text += fmt.Sprintf(", %s ahead of firings", time.Duration(w.AheadSeconds)*time.Second)
	}
	if w.MaxAgeSeconds > 0 {
		text += fmt.Sprintf(", replaced after %s", time.Duration(w.MaxAgeSeconds)*time.Second)
	}
	return text
}

// warmCounts describes the warm machines of a pool.
func warmCounts(n contract.WarmCounts) string {
	if n == (contract.WarmCounts{}) {
		return ""
	}
	return fmt.Sprintf("\nwarm: %d ready, %d in creation, %d of runs, %d ending", n.Ready, n.Creating, n.Claimed, n.Ending)
}

// runner describes the runner of the pool and its settings.
func runner(p contract.Pool) string {
	if p.Runner == "" {
		return ""
	}
	text := "\nrunner: " + p.Runner
	s := p.Settings
	if s == nil {
		return text
	}
	for _, setting := range []struct{ name, value string }{
		{"apps", strings.Join(s.Apps, ", ")},
		{"regions", strings.Join(s.Regions, ", ")},
		{"cluster", s.Cluster},
		{"namespace", s.Namespace},
		{"pod defaults", string(s.PodDefaults)},
		{"socket", s.Socket},
		{"network", s.Network},
	} {
		if setting.value != "" {
			text += "\n  " + setting.name + ": " + display.Clean(setting.value)
		}
	}
	return text
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

// storedPool reads a pool; without a tag if it does not exist.
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
	return a.say("%s: %s, %d of %s slots held, %d queued of %s\n", p.ID, admission(p.Pool), p.Held, bound(p.Limit), p.Queued, bound(p.QueueLimit))
}

func (a *app) poolsDrain() *cobra.Command {
	var deadline time.Duration
	c := &cobra.Command{
		Use: "drain POOL", Short: "Stop the admission of a pool",
		Long: `Stop the admission of a pool. Runs stay in its queue, and those that hold a slot keep
it. With --deadline those that still run then are cancelled.`,
		Example: "  sortie pools drain default --deadline 10m",
		Args:    exactly("POOL"),
	}
	c.Flags().DurationVar(&deadline, "deadline", 0, "time until the remaining runs are cancelled; by default never")
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
have not ended after --wait, nothing is changed.`,
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
