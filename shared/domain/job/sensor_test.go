package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestPolledSensorsAreChecked has sensors with a problem each.
func TestPolledSensorsAreChecked(t *testing.T) {
	t.Parallel()
	for sensor, field := range map[string]string{
		`{}`: "sensor",
		`{"bucket":{"name":"scans","secretRef":"s"},"cloudEvent":{}}`:                              "sensor",
		`{"bucket":{"secretRef":"s"}}`:                                                             "sensor.bucket.name",
		`{"bucket":{"name":"Scans/../kept","secretRef":"s"}}`:                                      "sensor.bucket.name",
		`{"bucket":{"name":"scans"}}`:                                                              "sensor.bucket.secretRef",
		`{"bucket":{"name":"scans","secretRef":"../s"}}`:                                           "sensor.bucket.secretRef",
		`{"bucket":{"name":"scans","secretRef":"s","prefix":"a\u0000"}}`:                           "sensor.bucket.prefix",
		`{"bucket":{"name":"scans","secretRef":"s","prefix":"` + strings.Repeat("k", 1025) + `"}}`: "sensor.bucket.prefix",
		`{"bucket":{"name":"scans","secretRef":"s","region":"evil.example/#"}}`:                    "sensor.bucket.region",
		`{"bucket":{"name":"scans","secretRef":"s","endpoint":"ftp://a"}}`:                         "sensor.bucket.endpoint",
		`{"bucket":{"name":"scans","secretRef":"s","endpoint":"https://a.example?x=1"}}`:           "sensor.bucket.endpoint",
		`{"bucket":{"name":"scans","secretRef":"s","every":"9s"}}`:                                 "sensor.bucket.every",
		`{"queue":{"secretRef":"s"}}`:                                                              "sensor.queue.url",
		`{"queue":{"url":"https://q.example/1/q","secretRef":"s","every":"2h"}}`:                   "sensor.queue.every",
		`{"queue":{"url":"https://q.example/1/q"}}`:                                                "sensor.queue.secretRef",
		`{"queue":{"url":"https://q.example/1/q","secretRef":"s"}}`:                                "",
		`{"bucket":{"name":"scans","secretRef":"s","prefix":"in/","existing":true,"every":"10s"}}`: "",
	} {
		_, problems := job.Parse(fmt.Appendf(nil, `{"id":"scan","image":"a","sensor":%s}`, sensor), nil)
		if field == "" && len(problems) > 0 || field != "" && (len(problems) == 0 || problems[0].Field != field) {
			t.Errorf("%.100s: got %v, want a problem of %q", sensor, problems, field)
		}
	}
}

// TestPolledSensorIsAnAddress checks that a changed address needs the right to choose addresses.
func TestPolledSensorIsAnAddress(t *testing.T) {
	t.Parallel()
	bucket := parseJob(t, `{"id":"scan","image":"a","sensor":{"bucket":{"name":"scans","prefix":"/in/","region":"eu-central-1","secretRef":"s"}}}`)
	queue := parseJob(t, `{"id":"scan","image":"a","sensor":{"queue":{"url":"https://sqs.eu-north-1.amazonaws.com/1/q","secretRef":"s"}}}`)
	if got := bucket.NewAddress(job.Definition{}); got != "sensor.bucket.endpoint" {
		t.Errorf("got %q, want the address of the store", got)
	}
	if got := queue.NewAddress(bucket); got != "sensor.queue.url" {
		t.Errorf("got %q, want the address of the queue", got)
	}
	if got := bucket.NewAddress(bucket); got != "" {
		t.Errorf("got %q, want no new address", got)
	}
	if b, q := bucket.Sensor.Bucket.Address(), queue.Sensor.Queue.SigningRegion(); b != "https://s3.eu-central-1.amazonaws.com" || q != "eu-north-1" {
		t.Errorf("got %s and %s, want the regions", b, q)
	}
	bucket.Command = []string{"sync", "s3://scans//in/done", "s3://scans//in/{{event.subject}}", "s3://other//in/"}
	bucket.Env = map[string]job.Variable{"OUT": {Value: "s3://scans//in/"}}
	if got := strings.Join(bucket.Warnings(), "; "); strings.Count(got, "starts another run") != 2 || !strings.Contains(got, "command.1") || !strings.Contains(got, "env.OUT") || !strings.Contains(got, "seldom begin with /") {
		t.Errorf("got %q, want warnings about command.1, env.OUT and the prefix", got)
	}
}
