package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Bound formats a limit; 0 means no limit.
func Bound(limit int) string {
	if limit == 0 {
		return "no limit"
	}
	return fmt.Sprint(limit)
}

// Admission describes whether the pool admits runs.
func (z Times) Admission(p contract.Pool) string {
	switch {
	case !p.Draining:
		return "open"
	case p.DrainBy.IsZero():
		return "draining"
	}
	return "draining until " + z.Moment(p.DrainBy)
}

// replica describes a replica of an engine.
func (z Times) replica(r contract.ReplicaHealth) string {
	state := "ready"
	if !r.Ready {
		state = "not ready: " + Clean(r.Reason)
	}
	if r.EngineVersion != "" {
		state += ", version " + Clean(r.EngineVersion)
	}
	text := fmt.Sprintf("replica %s: %d runs, %s", Clean(r.ID), r.Held, state)
	m := r.Machine
	if m == nil {
		return text
	}
	text += ", " + Clean(m.State)
	if m.RunID != "" {
		text += ", run " + Clean(m.RunID)
	}
	if m.URL != "" {
		text += " at " + Clean(m.URL)
	}
	if m.Failures > 0 {
		text += fmt.Sprintf(", failed %d times", m.Failures)
	}
	if !m.RetryAt.IsZero() {
		text += ", next run at " + z.Moment(m.RetryAt)
	}
	if e := m.LastError; e != nil {
		text += fmt.Sprintf("\n  last run %s: %s: %s", Clean(m.LastRunID), Clean(e.Code), Clean(e.Message))
	}
	return text
}

// machineStates formats the number of the runs' machines in each state.
func machineStates(h contract.PoolHealth) string {
	if h.Machines == 0 {
		return ""
	}
	n := h.MachineStates
	return fmt.Sprintf("\nmachines: %d starting, %d running, %d ending", n.Starting, n.Running, n.Ending)
}

// expectedWait formats the expected wait of a run that is submitted now.
func expectedWait(w *contract.PoolWait) string {
	if w == nil {
		return ""
	}
	basis := ""
	if w.Measured == 0 {
		basis = " (not measured)"
	}
	return fmt.Sprintf("\na normal run from now waits %.1f s, or up to %.1f s (9 of 10)%s", w.P50Seconds, w.P90Seconds, basis)
}

// textWidth limits the lines of messages, in columns.
const textWidth = 80

// poolErrors formats the last failures of a pool's platform.
func (z Times) poolErrors(groups []contract.PoolErrorGroup) (text string) {
	for _, g := range groups {
		text += fmt.Sprintf("\nerror: %s, %d times, last at %s", g.Code, g.Count, z.Moment(g.LastAt))
		if g.Count > 1 {
			text += "\n  first at " + z.Moment(g.FirstAt)
		}
		for _, line := range wrapped(Clean(g.Message), textWidth-2) {
			text += "\n  " + line
		}
	}
	return text
}

// wrapped breaks text into lines of at most width characters, between words if possible.
func wrapped(text string, width int) (lines []string) {
	var line []rune
	for word := range strings.FieldsSeq(text) {
		next := []rune(word)
		if len(line) > 0 && len(line)+1+len(next) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		for line = append(line, next...); len(line) > width; line = line[width:] {
			lines = append(lines, string(line[:width]))
		}
	}
	if len(line) > 0 {
		lines = append(lines, string(line))
	}
	return lines
}

// startFigures formats the start metrics of a pool.
func (z Times) startFigures(m contract.PoolMetrics) (text string) {
	if m.StartP50Seconds != nil && m.StartP99Seconds != nil {
		text += fmt.Sprintf("\nstarts: %.1f s for half of %d, %.1f s for 99 of 100", *m.StartP50Seconds, m.MeasuredStarts, *m.StartP99Seconds)
	}
	if m.StartsPerSecond != nil {
		text += fmt.Sprintf("\nstarts a second: %.2g in the last minute, %.2g permitted", m.RecentStartsPerSecond, *m.StartsPerSecond)
		if !m.NextStartAt.IsZero() {
			text += "\nnext start: " + z.Moment(m.NextStartAt)
		}
	} else if m.RecentStartsPerSecond > 0 {
		text += fmt.Sprintf("\nstarts a second: %.2g in the last minute", m.RecentStartsPerSecond)
	}
	return text
}

// remaining lists the runs that block the drain of a pool.
func (z Times) remaining(p contract.Pool, h contract.PoolHealth) (text string) {
	if !p.Draining {
		return ""
	}
	if d := h.Drain; d != nil {
		text += fmt.Sprintf("\ndrain: %s, %d runs and %d warm machines remain", d.Phase, d.Runs, d.WarmMachines)
	}
	for _, r := range h.Remaining {
		text += fmt.Sprintf("\nremains: %s, %s since %s", r.RunID, r.State, z.Moment(r.Since))
		if r.Cancelling {
			text += ", asked to end"
		}
	}
	if more := h.Held - len(h.Remaining); more > 0 {
		text += fmt.Sprintf("\nremains: %d more", more)
	}
	return text
}

// Fallback formats a fallback of a pool.
func Fallback(f contract.PoolFallback) string {
	text := f.Pool + " on " + strings.Join(f.On, ", ")
	if f.ThrottledSeconds != nil {
		text += " for " + (time.Duration(*f.ThrottledSeconds) * time.Second).String()
	}
	return text
}

// Placement formats the runner of the pool, its settings and its fallbacks.
func Placement(p contract.Pool) string {
	text := runner(p)
	for _, f := range p.Fallback {
		text += "\nfallback: " + Fallback(f)
	}
	return text + warmText(p.Warm)
}

// warmText formats the settings of warm machines.
func warmText(w *contract.PoolWarm) string {
	if w == nil {
		return ""
	}
	text := fmt.Sprintf("\nwarm machines: %d to %d", w.Min, w.Max)
	if w.Image != "" {
		text += " of " + Clean(w.Image)
	}
	if w.AheadSeconds > 0 {
		text += fmt.Sprintf(", %s ahead of firings", time.Duration(w.AheadSeconds)*time.Second)
	}
	if w.MaxAgeSeconds > 0 {
		text += fmt.Sprintf(", replaced after %s", time.Duration(w.MaxAgeSeconds)*time.Second)
	}
	if w.After == string(platform.WarmRecycle) {
		text += "\nwarm machines: recycled after a clean exit"
	}
	return text
}

// warmCounts formats the numbers of a pool's warm machines.
func warmCounts(n contract.WarmCounts) string {
	if n == (contract.WarmCounts{}) {
		return ""
	}
	return fmt.Sprintf("\nwarm: %d ready, %d in creation, %d of runs, %d ending", n.Ready, n.Creating, n.Claimed, n.Ending)
}

// runner formats the runner of the pool and its settings.
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
			text += "\n  " + setting.name + ": " + Clean(setting.value)
		}
	}
	return text
}

// Pool formats a pool and its state.
func (z Times) Pool(p contract.Pool, h contract.PoolHealth) string {
	text := fmt.Sprintf("%s: %s%s\nslots: %d of %s held, %d with a machine\nqueue: %d of %s", p.ID, z.Admission(p), Placement(p),
		h.Held, Bound(p.Limit), h.Machines, h.Queued, Bound(p.QueueLimit))
	if wait := h.Metrics.LongestWaitSeconds; wait > 0 {
		text += ", the first for " + (time.Duration(wait) * time.Second).String()
	}
	for _, r := range h.Replicas {
		text += "\n" + z.replica(r)
	}
	text += machineStates(h) + warmCounts(h.WarmMachines) + z.startFigures(h.Metrics) + expectedWait(h.Metrics.ExpectedWait) + z.remaining(p, h)
	if p.Version > 0 {
		text += fmt.Sprintf("\nversion %d, of %s, by %s", p.Version, z.Moment(p.UpdatedAt), Clean(p.UpdatedBy))
	}
	if e := h.LastError; e != nil {
		text += fmt.Sprintf("\nlast error: %s: %s", e.Code, Clean(e.Message))
	}
	return text + z.poolErrors(h.Errors)
}
