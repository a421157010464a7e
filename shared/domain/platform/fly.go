package platform

import (
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// FlySettings are the settings of RunnerFly. Empty lists mean those of the deployment.
type FlySettings struct {
	// Apps are the apps in which machines are created.
	Apps []string `json:"apps,omitempty"`
	// Regions are tried in this order, after the region of the job.
	Regions []string `json:"regions,omitempty"`
}

const (
	maxApps    = 100
	maxRegions = 100
)

var (
	appName    = limit.Form{First: limit.Letters + limit.Digits + "_-", Rest: limit.Letters + limit.Digits + "_-", Most: 63}
	regionName = limit.Form{First: limit.Lower + limit.Digits, Rest: limit.Lower + limit.Digits + "-", Most: 32}
)

func (s *FlySettings) check(o RunnerOffer) []*fault.Fault {
	found := checkNames("settings.apps", s.Apps, maxApps, appName, "1 to 63 letters, digits, _ and -")
	if len(found) == 0 {
		for i, app := range s.Apps {
			found = append(found, offered("settings.apps."+strconv.Itoa(i), "app", app, o.FlyApps))
		}
	}
	return append(found, checkNames("settings.regions", s.Regions, maxRegions, regionName, "1 to 32 lower-case letters, digits and hyphens")...)
}

// checkNames returns the faults of a list of names: too many, malformed, or repeated.
func checkNames(field string, names []string, most int, form limit.Form, want string) (found []*fault.Fault) {
	if len(names) > most {
		return []*fault.Fault{fault.Invalid(field, "%d entries, want at most %d", len(names), most)}
	}
	for i, name := range names {
		at := field + "." + strconv.Itoa(i)
		switch {
		case !form.Matches(name):
			found = append(found, fault.Invalid(at, "malformed name %q, want %s", limit.Cut(name, limit.FileName), want))
		case slices.Contains(names[:i], name):
			found = append(found, fault.Invalid(at, "repeated name %q, want each once", name))
		}
	}
	return found
}
