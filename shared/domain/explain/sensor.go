package explain

import (
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

// fromSensor says what starts the runs of a job with a sensor, and what a polled sensor last met. s is nil
// for a sensor that is not polled.
func fromSensor(s *sensor.State) (text string) {
	switch {
	case s == nil:
		return "events and requests run it"
	case s.Failures > 0:
		text = fmt.Sprintf("its sensor fails since %s: %s", stamp(s.FailedAt), s.Failure)
	case s.PolledAt.IsZero():
		text = "its sensor has not finished a poll yet"
	default:
		text = fmt.Sprintf("its sensor polled at %s and knows %d objects", stamp(s.PolledAt), s.Known)
		if s.Known == 0 {
			text = fmt.Sprintf("its sensor polled at %s", stamp(s.PolledAt))
		}
	}
	if s.Refused != "" {
		text += fmt.Sprintf("; it refused an item at %s: %s", stamp(s.RefusedAt), s.Refused)
	}
	return text
}
