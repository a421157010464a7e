package orchestrator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func lookup(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestDefaultsAreAConfiguration(t *testing.T) {
	t.Parallel()
	c, err := orchestrator.ConfigFrom(lookup(map[string]string{"SORTIE_REGION": ""}))
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxMachines != 16 || c.Policy.TimeLimit != time.Hour || c.Policy.Retry.MaxAttempts != 3 ||
		c.Image != orchestrator.DefaultImage || c.Policy.RecordRetention != 7*24*time.Hour || c.Region != "ord" {
		t.Errorf("the defaults are %+v", c)
	}
	for _, s := range orchestrator.Settings() {
		if s.Name == "" || s.Meaning == "" {
			t.Errorf("%+v is not documented", s)
		}
	}
}

func TestEveryProblemOfTheConfigurationIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := orchestrator.ConfigFrom(lookup(map[string]string{
		"SORTIE_MAX_MACHINES": "-1", "SORTIE_TIME_LIMIT": "1500ms", "SORTIE_MACHINE_MEMORY": "300",
		"SORTIE_CANCEL_GRACE": "soon", "SORTIE_PUBLIC_URL": "sortie.example.org", "SORTIE_REDIRECT_OVER": "8 MiB",
	}))
	if err == nil {
		t.Fatal("nothing was wrong with it")
	}
	for _, name := range []string{
		"SORTIE_MAX_MACHINES", "SORTIE_TIME_LIMIT", "SORTIE_MACHINE_MEMORY",
		"SORTIE_CANCEL_GRACE", "SORTIE_PUBLIC_URL", "SORTIE_REDIRECT_OVER",
	} {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

func TestSettingsMayNotContradictEachOther(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"timeout below twice the interval": {"SORTIE_HEARTBEAT_INTERVAL": "50s", "SORTIE_HEARTBEAT_TIMEOUT": "90s"},
		"timeout not below the time limit": {"SORTIE_TIME_LIMIT": "90s", "SORTIE_HEARTBEAT_TIMEOUT": "90s"},
		"record gone before its output":    {"SORTIE_RECORD_RETENTION": "1h"},
		"delays that shrink":               {"SORTIE_RETRY_DELAY": "2m", "SORTIE_RETRY_MAX_DELAY": "1m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := orchestrator.ConfigFrom(lookup(values)); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

func TestAnAddressMayEndInASlash(t *testing.T) {
	t.Parallel()
	c, err := orchestrator.ConfigFrom(lookup(map[string]string{"SORTIE_PUBLIC_URL": "https://sortie.example.org/"}))
	if err != nil || c.PublicURL != "https://sortie.example.org" {
		t.Errorf("it became %q: %v", c.PublicURL, err)
	}
}

func TestDefaultsFitWhatIsGiven(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"a short time limit":       {"SORTIE_TIME_LIMIT": "3s"},
		"a long interval":          {"SORTIE_HEARTBEAT_INTERVAL": "5m"},
		"a short timeout":          {"SORTIE_HEARTBEAT_TIMEOUT": "4s"},
		"outputs kept for a month": {"SORTIE_OUTPUT_RETENTION": "720h"},
		"a slow retry":             {"SORTIE_RETRY_DELAY": "10m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := orchestrator.ConfigFrom(lookup(values)); err != nil {
				t.Error(err)
			}
		})
	}
}
