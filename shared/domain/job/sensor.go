package job

import (
	"strconv"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

// validateSensor checks the sensor of a job.
func validateSensor(d Definition, adHoc bool, p *problems) {
	const field = "sensor"
	s := d.Sensor
	switch {
	case s == nil:
		return
	case adHoc:
		p.bad(field, "sensor of a single run, want none")
		return
	case len(d.After) > 0:
		p.addConflict(field, "a sensor and after; leave one out: the job comes after others, or items start it")
	case s.CloudEvent == nil:
		p.bad(field, "empty sensor, want cloudEvent")
		return
	}
	validateFilters(join(field, "cloudEvent.types"), s.CloudEvent.Types, p)
	validateFilters(join(field, "cloudEvent.sources"), s.CloudEvent.Sources, p)
}

func validateFilters(field string, filters []string, p *problems) {
	if len(filters) > sensor.MaxFilters {
		p.bad(field, "%d filters, want at most %d", len(filters), sensor.MaxFilters)
	}
	for i, text := range filters {
		if text == "" || len(text) > sensor.MaxAttribute || !limit.Printable(text) {
			p.bad(join(field, strconv.Itoa(i)), "malformed filter, want 1 to %d bytes without control characters, such as com.example.* or /shop", sensor.MaxAttribute)
		}
	}
}
