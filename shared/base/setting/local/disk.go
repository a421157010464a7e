// Package local declares and reads settings that only a system on one host has: the size of its
// records, and its Kubernetes cluster.
package local

import "github.com/sortie-dev/sortie/shared/base/setting"

// Disk configures the file of the records. The zero value has no limit.
type Disk struct {
	// Limit is the size of the records in bytes above which the oldest ended runs and
	// published events are removed; 0 means no limit.
	Limit int64
}

func diskSettings(c *Disk) []setting.Setting {
	return []setting.Setting{
		setting.Bytes(&c.Limit, "SORTIE_STORE_LIMIT", "0", "bytes of `sortie.db` above which ended runs with their outputs, and published events, are removed early, the oldest first, but none younger than 10 seconds; 0 is no limit"),
	}
}

// DiskSettings returns the settings of the file, for documentation.
func DiskSettings() []setting.Setting { return diskSettings(&Disk{}) }

// ReadDisk reads the variables of the file. An empty value counts as absent. The error joins all problems,
// each with its variable.
func ReadDisk(lookup setting.Lookup) (c Disk, err error) {
	_, err = setting.Read(lookup, diskSettings(&c))
	return c, err
}
