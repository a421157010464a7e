package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/scheduler"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Schedules returns the schedules of the group SORTIE_SCHEDULE_GROUP. A schedule invokes the
// function whose ARN is SORTIE_FIRE with the role SORTIE_WAKE_ROLE. A failed invocation goes to
// the dead-letter queue SORTIE_DEAD_LETTERS.
func Schedules(p *process.Process) port.Schedules {
	schedules, err := scheduler.New(p.AWS(), scheduler.Config{
		Group: p.Need("SORTIE_SCHEDULE_GROUP"), Function: p.Need("SORTIE_FIRE"), Role: p.Need("SORTIE_WAKE_ROLE"),
		DeadLetters: p.Need("SORTIE_DEAD_LETTERS"), Clock: p.Clock(),
	})
	p.Check(err)
	return schedules
}
