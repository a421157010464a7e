// Package disk declares and reads the settings of deployments that store their records in a
// file.
package disk

import "github.com/sortie-dev/sortie/shared/base/setting"

// Config configures the file of the records. The zero value has no limit.
type Config struct {
	// Limit is the size of the records in bytes above which the oldest ended runs and
	// published events are removed; 0 means no limit.
	Limit int64
}

func settings(c *Config) []setting.Setting {
	return []setting.Setting{
		setting.Bytes(&c.Limit, "SORTIE_STORE_LIMIT", "0", "bytes of `sortie.db` above which ended runs with their outputs, and published events, are removed early, the oldest first, but none younger than 10 seconds; 0 is no limit"),
	}
}

// Settings returns the settings of this package, for documentation.
func Settings() []setting.Setting { return settings(&Config{}) }

// Read reads the variables. An empty value counts as absent. The error joins all problems,
// each with its variable.
func Read(lookup setting.Lookup) (c Config, err error) {
	_, err = setting.Read(lookup, settings(&c))
	return c, err
}
