package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

func TestDaysOfAnswersAreRead(t *testing.T) {
	t.Parallel()
	const day, record = 24 * time.Hour, 90 * 24 * time.Hour
	for _, row := range []struct {
		text          string
		acme, another time.Duration
	}{
		{"", 0, 0}, {"30", 30 * day, 30 * day}, {"30,acme=7", 7 * day, 30 * day}, {"acme=7", 7 * day, 0}, {"acme=0, 3650", time.Minute, 0}, {"90", 0, 0},
	} {
		c, err := service.Read(setting.Map(map[string]string{"SORTIE_ANSWER_DAYS": row.text}))
		if acme, another := c.Answers.Of("acme", record), c.Answers.Of("another", record); err != nil || acme != row.acme || another != row.another {
			t.Errorf("%q: got %s and %s, %v, want %s and %s", row.text, acme, another, err, row.acme, row.another)
		}
	}
	for _, text := range []string{"x", "-1", "3651", "1.5", "=7", "acme=", "acme=x", "30,7", "acme=1,acme=2", "30,,7", "acme=1=2"} {
		_, err := service.Read(setting.Map(map[string]string{"SORTIE_ANSWER_DAYS": text}))
		if err == nil || !strings.Contains(err.Error(), "SORTIE_ANSWER_DAYS") {
			t.Errorf("%q: got %v, want an error that names the variable", text, err)
		}
	}
}
