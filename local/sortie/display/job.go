package display

import (
	"fmt"

	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Version describes a version of a job.
func (z Times) Version(v contract.JobVersion) string {
	line := fmt.Sprintf("Version %d, of %s", v.Version, z.Moment(v.UpdatedAt))
	if v.UpdatedBy != "" {
		line += ", by " + v.UpdatedBy
	}
	return line
}

// Schedule describes the state of the schedule of a job.
func (z Times) Schedule(j api.JobAnswer) string {
	switch {
	case j.Paused:
		return "Paused since " + z.Moment(j.PausedAt)
	case j.NextAt.IsZero():
		return "No firing follows"
	}
	return "Next firing " + z.Moment(j.NextAt)
}
