// Package disk declares the settings of deployments that keep their records in a file, and
// reads them.
package disk

import "github.com/sortie-dev/sortie/shared/setting"

// Config configures the file of the records. Its zero value has no limit.
type Config struct {
	// Limit is the size in bytes above which the oldest ended runs and events are removed;
	// 0 is no limit.
	Limit int64
}

func settings(c *Config) []setting.Setting {
	return []setting.Setting{
		setting.Bytes(&c.Limit, "SORTIE_STORE_LIMIT", "0", "bytes of the records in `sortie.db` above which ended runs with their outputs, and published events, are removed before their retention is over, the oldest first; runs under way are kept, and so is what is younger than 10 seconds; 0 is no limit"),
	}
}

// Settings lists the variables, for documentation.
func Settings() []setting.Setting { return settings(&Config{}) }

// Read reads the variables; an empty value counts as absent. The error joins every
// problem, each with its variable.
func Read(lookup setting.Lookup) (c Config, err error) {
	_, err = setting.Read(lookup, settings(&c))
	return c, err
}
