package eventtype_test

import (
	"regexp"
	"testing"

	"github.com/sortie-dev/sortie/events/eventtype"
)

func TestEachTypeIsListedOnce(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	seen := map[eventtype.Type]bool{}
	for _, info := range eventtype.All() {
		if seen[info.Type] || !form.MatchString(string(info.Type)) || info.When == "" || info.Subject == "" {
			t.Errorf("got %+v, want a type with a name, a subject and a sentence, once", info)
		}
		seen[info.Type] = true
		if got, ok := eventtype.Of(info.Type); !ok || got != info {
			t.Errorf("got %+v, %t for %s, want its description", got, ok, info.Type)
		}
	}
	if _, ok := eventtype.Of("job.unknown"); ok {
		t.Error("got a description of an unknown type, want none")
	}
}

func TestChannelFollowsTheSubject(t *testing.T) {
	t.Parallel()
	for subject, want := range map[eventtype.Subject]string{
		eventtype.OfRun: "orch.jobs", eventtype.OfStream: "orch.jobs", eventtype.OfSchedule: "orch.schedules", eventtype.OfPolicy: "orch.policy",
	} {
		if got := subject.Channel(); got != want {
			t.Errorf("%s: got channel %s, want %s", subject, got, want)
		}
	}
}
