package job

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
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
	}
	kinds := 0
	if s.CloudEvent != nil {
		kinds++
		validateFilters(join(field, "cloudEvent.types"), s.CloudEvent.Types, p)
		validateFilters(join(field, "cloudEvent.sources"), s.CloudEvent.Sources, p)
	}
	if s.Bucket != nil {
		kinds++
		validateBucket(join(field, "bucket"), *s.Bucket, p)
	}
	if s.Queue != nil {
		kinds++
		at := join(field, "queue")
		validateURL(join(at, "url"), s.Queue.URL, p)
		validatePolled(at, s.Queue.Region, s.Queue.SecretRef, s.Queue.Every, p)
	}
	if kinds != 1 {
		p.bad(field, "%d kinds of items, want one of cloudEvent, bucket and queue", kinds)
	}
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func validateBucket(at string, b sensor.Bucket, p *problems) {
	if !bucketName.MatchString(b.Name) {
		p.bad(join(at, "name"), "malformed or missing name %q of a bucket, want 3 to %d lower-case letters, digits, dots and hyphens", limit.Cut(b.Name, nameLimit), sensor.MaxBucket)
	}
	if len(b.Prefix) > sensor.MaxKey || !limit.Printable(b.Prefix) {
		p.bad(join(at, "prefix"), "malformed prefix, want at most %d bytes without control characters", sensor.MaxKey)
	}
	if b.Endpoint != "" {
		validateURL(join(at, "endpoint"), b.Endpoint, p)
		if strings.ContainsAny(b.Endpoint, "?#") {
			p.bad(join(at, "endpoint"), "address with a query or a fragment, want https://HOST")
		}
	}
	validatePolled(at, b.Region, b.SecretRef, b.Every, p)
}

// validatePolled checks what buckets and queues have in common.
func validatePolled(at, region, secret, every string, p *problems) {
	if region != "" && !regionName.MatchString(region) {
		p.bad(join(at, "region"), "malformed region %q, want one such as eu-central-1", limit.Cut(region, nameLimit))
	}
	if secret == "" {
		p.bad(join(at, "secretRef"), "missing secretRef, want the name of a secret with ACCESS_KEY_ID:SECRET_ACCESS_KEY")
	}
	validateSecret(join(at, "secretRef"), secret, p)
	p.duration(join(at, "every"), Duration(every), sensor.MinEvery, sensor.MaxEvery)
}

// sensorAddress returns the address that a sensor polls, with its field; empty without one.
func (d Definition) sensorAddress() (field, address string) {
	switch s := d.Sensor; {
	case s == nil:
		return "", ""
	case s.Bucket != nil:
		return "sensor.bucket.endpoint", s.Bucket.Address()
	case s.Queue != nil:
		return "sensor.queue.url", s.Queue.URL
	}
	return "", ""
}

// sensorWarnings returns the warnings about a sensor.
func (d Definition) sensorWarnings() (found []string) {
	switch s := d.Sensor; {
	case s == nil:
	case s.CloudEvent != nil:
		found = append(found, literalStars("sensor.cloudEvent.types", s.CloudEvent.Types)...)
		found = append(found, literalStars("sensor.cloudEvent.sources", s.CloudEvent.Sources)...)
	case s.Bucket != nil:
		if strings.HasPrefix(s.Bucket.Prefix, "/") {
			found = append(found, "sensor.bucket.prefix: keys of objects seldom begin with /")
		}
		found = append(found, d.ownInput(*s.Bucket)...)
	}
	return found
}

// ownInput returns a warning for each argument and variable with an address below the prefix of the
// sensor: a run that writes there starts another one.
func (d Definition) ownInput(b sensor.Bucket) (found []string) {
	watched := "s3://" + b.Name + "/" + b.Prefix
	check := func(field, text string) {
		if strings.Contains(text+"/", watched) && !strings.Contains(text, "{{"+spec.EventPrefix) {
			found = append(found, fmt.Sprintf("%s: an address below the prefix of the sensor; an object that a run writes there starts another run", field))
		}
	}
	for i, argument := range d.Command {
		check(fmt.Sprintf("command.%d", i), argument)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		check(join("env", name), d.Env[name].Value)
	}
	return found
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
