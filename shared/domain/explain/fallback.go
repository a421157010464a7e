package explain

import (
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// split says that an inference task belongs to a share of its model.
func (x *Explanation) split(r run.Run) {
	if work := r.Work.Inference; work != nil && work.SplitPercent > 0 {
		x.Message += fmt.Sprintf("; the task is one of the %d %% for model %s that model %s serves", work.SplitPercent, work.Model, work.ServedModel())
	}
}

// fallbacks lists the fallbacks that the run can still use. A running attempt cannot use any.
func (x *Explanation) fallbacks(r run.Run, f Facts) {
	if !r.HasExecution() {
		x.routes(r)
		return
	}
	if r.State != run.Running {
		x.Fallbacks = r.Untried(f.Fallbacks)
	}
}

// routes lists the fallbacks that an inference task can still use, and says why others cannot serve
// it.
func (x *Explanation) routes(r run.Run) {
	var usable []platform.Fallback
	for _, route := range r.Routes {
		switch {
		case route.From == "":
		case route.Unfit != "":
			x.Message += fmt.Sprintf("; pool %s cannot serve the task: %s", route.Pool, route.Unfit)
		default:
			usable = append(usable, platform.Fallback{Pool: route.Pool, On: route.On})
		}
	}
	x.Fallbacks = r.Untried(usable)
}

// failedTo says in words what the pool of a fallback has not done.
func failedTo(r run.Run) string {
	if !r.HasExecution() {
		return "did not serve the task"
	}
	return "started no machine"
}
