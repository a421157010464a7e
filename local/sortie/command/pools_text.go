package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
)

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
