package operator

import (
	"errors"
	"fmt"

	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
)

// destroyKeys wipes everything with which somebody could read or imitate a gateway. It goes on after failures, and reports all of
// them.
func destroyKeys(o *keysOrder) error {
	if !o.yes {
		return errors.New("nothing was destroyed: say --yes to destroy all keys and messages of this gateway for good")
	}
	files, dataDir, err := config.Secrets(o.config)
	if err != nil {
		return err
	}
	journal, err := keyfile.Destroyable(dataDir)
	if errors.Is(err, keyfile.ErrRuns) {
		return err
	}
	for _, file := range append(files, journal...) {
		if gone := keyfile.Destroy(file); gone != nil {
			err = errors.Join(err, gone)
			continue
		}
		fmt.Fprintf(o.stdout, "destroyed %s\n", file)
	}
	fmt.Fprintln(o.stdout, "what was here is overwritten as far as the file system does that. A solid-state disk, a file system that copies on write, a backup and a swap file may keep it: destroy the disk where that matters, and have the authority take this node out of the roster")
	return err
}
