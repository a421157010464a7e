package stack

import (
	"errors"
	"strings"

	"github.com/sortie-dev/sortie/shared/setting"
	"github.com/sortie-dev/sortie/shared/setting/service"
)

// RunnerSettings configures the runner.
type RunnerSettings struct {
	// FlyApps are the apps for machines, FlyURL the Machines API; empty is Fly's own.
	FlyApps []string
	FlyURL  string
}

// settings lists the keys, bound to s.
func (s *RunnerSettings) settings() []setting.Setting {
	return []setting.Setting{
		setting.List(&s.FlyApps, "flyApps", service.DefaultApp, "Fly apps for machines"),
		setting.URL(&s.FlyURL, "flyUrl", "", "the Machines API; empty is Fly's own"),
	}
}

// contradictions lists the problems of keys that are well-formed by themselves.
func (s *RunnerSettings) contradictions() []error {
	if len(s.FlyApps) == 0 {
		return []error{errors.New("flyApps: want at least one")}
	}
	return nil
}

// offers are the variables with what pools can name.
func (b *builder) offers() map[string]string {
	return map[string]string{"SORTIE_FLY_APPS": strings.Join(b.settings.FlyApps, ",")}
}

// machinesGrant is what a function needs for calls to the runner.
func (b *builder) machinesGrant() grant {
	return b.secretGrant("fly", map[string]string{
		"SORTIE_FLY_APPS": strings.Join(b.settings.FlyApps, ","), "SORTIE_FLY_URL": b.settings.FlyURL,
	})
}
