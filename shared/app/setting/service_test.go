package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	c, err := service.Read(setting.Map(map[string]string{"SORTIE_REGION": ""}))
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxMachines != 16 || c.Policy.TimeLimit != time.Hour || c.Policy.Retry.MaxAttempts != 3 ||
		c.Image != service.DefaultImage || c.Policy.RecordRetention != 7*24*time.Hour || c.Region != "ord" {
		t.Errorf("got defaults %+v", c)
	}
	for _, s := range service.Settings() {
		if s.Name == "" || s.Meaning == "" {
			t.Errorf("%+v has no name or no meaning", s)
		}
	}
}

func TestEveryProblemIsNamed(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"SORTIE_MAX_MACHINES": "-1", "SORTIE_TIME_LIMIT": "1500ms", "SORTIE_MACHINE_MEMORY": "300",
		"SORTIE_CANCEL_GRACE": "soon", "SORTIE_PUBLIC_URL": "sortie.example.org", "SORTIE_REDIRECT_OVER": "8 MiB",
		"SORTIE_HOOK_ALLOW": "https://hooks.corp.example", "SORTIE_HOOK_PORTS": "https",
	}
	_, err := service.Read(setting.Map(values))
	for name := range values {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("got %v, want %s in it", err, name)
		}
	}
}

func TestHookSettings(t *testing.T) {
	t.Parallel()
	c, err := service.Read(setting.Map(map[string]string{"SORTIE_HOOK_ALLOW": "10.0.0.0/8, hooks.corp.example:8443", "SORTIE_HOOK_PORTS": "443,8444"}))
	if err != nil {
		t.Fatal(err)
	}
	for url, permitted := range map[string]bool{
		"https://10.1.2.3:9/": true, "https://hooks.corp.example:8443/": true, "https://example.org:8444/": true,
		"https://192.168.0.1/": false, "https://hooks.corp.example:8445/": false, "https://example.org:8443/": false,
	} {
		if err := c.Hooks.CheckURL(url); (err == nil) != permitted {
			t.Errorf("%s: got %v, want permitted %v", url, err, permitted)
		}
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"timeout below twice the interval": {"SORTIE_HEARTBEAT_INTERVAL": "50s", "SORTIE_HEARTBEAT_TIMEOUT": "90s"},
		"timeout not below the time limit": {"SORTIE_TIME_LIMIT": "90s", "SORTIE_HEARTBEAT_TIMEOUT": "90s"},
		"record shorter than its output":   {"SORTIE_RECORD_RETENTION": "1h"},
		"decreasing delays":                {"SORTIE_RETRY_DELAY": "2m", "SORTIE_RETRY_MAX_DELAY": "1m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := service.Read(setting.Map(values)); err == nil || !strings.HasPrefix(err.Error(), "SORTIE_") {
				t.Errorf("got %v, want a problem with its variable", err)
			}
		})
	}
}

func TestDefaultsAdaptToGivenSettings(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"short time limit":       {"SORTIE_TIME_LIMIT": "3s"},
		"long interval":          {"SORTIE_HEARTBEAT_INTERVAL": "5m"},
		"short timeout":          {"SORTIE_HEARTBEAT_TIMEOUT": "4s"},
		"long output retention":  {"SORTIE_OUTPUT_RETENTION": "720h"},
		"long first retry delay": {"SORTIE_RETRY_DELAY": "10m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := service.Read(setting.Map(values)); err != nil {
				t.Error(err)
			}
		})
	}
}
