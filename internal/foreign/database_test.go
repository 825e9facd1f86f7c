package foreign_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/foreign"
)

type sqliteError int

func (e sqliteError) Error() string { return "secret" }
func (e sqliteError) Code() int     { return int(e) }

type postgresError string

func (e postgresError) Error() string    { return "secret" }
func (e postgresError) SQLState() string { return string(e) }

// Hide replaces the text of a database error. The replacement has only the Go type, the error
// code and, for a known code, the database's description of the code.
func TestErrorsOfDatabases(t *testing.T) {
	for err, want := range map[error]string{
		sqliteError(5):         "database is locked (foreign_test.sqliteError, code 5)",
		sqliteError(5 | 1<<8):  "database is locked (foreign_test.sqliteError, code 261)",
		sqliteError(13):        "database or disk is full (foreign_test.sqliteError, code 13)",
		sqliteError(200):       "foreign_test.sqliteError, code 200",
		postgresError("55P03"): "lock not available (foreign_test.postgresError, SQLSTATE 55P03)",
		postgresError("08006"): "connection exception (foreign_test.postgresError, SQLSTATE 08006)",
		postgresError("0A000"): "foreign_test.postgresError, SQLSTATE 0A000",
	} {
		assert.Equal(t, want, foreign.Known{}.Hide(fmt.Errorf("secret: %w", err)).Error())
	}
	hidden := foreign.Known{}.Hide(errors.New("secret"))
	assert.NotContains(t, hidden.Error(), "secret")
	assert.NotContains(t, foreign.Known{}.Hide(postgresError("secret")).Error(), "secret")
}
