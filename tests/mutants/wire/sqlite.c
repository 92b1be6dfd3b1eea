// SQLite has no wire on which a statement could be changed, so this stands between sqlx and SQLite in
// the test programs. It replaces IDEM_SQLITE_FROM by IDEM_SQLITE_TO, and adds a byte to the file
// IDEM_SQLITE_SENT for each statement that was changed. Without these variables it only passes on.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef int (*sqlite3_row)(void *, int, char **, char **);

// A program that has no SQLite in it has to link, too.
#define WEAK __attribute__((weak))

WEAK int __real_sqlite3_prepare_v3(sqlite3 *, const char *, int, unsigned, sqlite3_stmt **, const char **);
WEAK int __real_sqlite3_exec(sqlite3 *, const char *, sqlite3_row, void *, char **);
WEAK int sqlite3_finalize(sqlite3_stmt *);

static bool is_word(const char *text) {
    for (; *text; text++) {
        if (!((*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z')))
            return false;
    }
    return true;
}

// With each `from` in it replaced; NULL where there is none. A single word is a statement of its own, as
// in Edit::apply.
static char *changed(const char *text, bool words_count) {
    const char *from = getenv("IDEM_SQLITE_FROM"), *to = getenv("IDEM_SQLITE_TO");
    if (!from || !to || !*from || !strstr(text, from))
        return NULL;
    if (is_word(from) && (!words_count || strcmp(text, from) != 0))
        return NULL;
    size_t places = 0;
    for (const char *at = text; (at = strstr(at, from)); at += strlen(from))
        places++;
    char *other = calloc(strlen(text) + places * strlen(to) + 1, 1), *end = other;
    if (!other)
        abort();
    const char *at = text;
    for (const char *next; (next = strstr(at, from)); at = next + strlen(from)) {
        end = mempcpy(end, at, (size_t)(next - at));
        end = stpcpy(end, to);
    }
    strcpy(end, at);
    return other;
}

static void count(void) {
    const char *path = getenv("IDEM_SQLITE_SENT");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file < 0 || write(file, "1", 1) != 1)
        abort();
    close(file);
}

// sqlx hands over several statements at once, and learns by `tail` where the next one begins. What is
// there is known once the original is prepared.
int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *text, int length, unsigned flags,
                              sqlite3_stmt **statement, const char **tail) {
    char *whole = length < 0 ? strdup(text) : strndup(text, (size_t)length);
    char *other = whole ? changed(whole, true) : NULL;
    free(whole);
    if (!other)
        return __real_sqlite3_prepare_v3(db, text, length, flags, statement, tail);
    const char *end = NULL, *other_end = NULL;
    int code = __real_sqlite3_prepare_v3(db, text, length, flags, statement, &end);
    if (code == 0) {
        sqlite3_finalize(*statement);
        code = __real_sqlite3_prepare_v3(db, other, -1, flags, statement, &other_end);
        // Or the change is in one of the statements behind it.
        if (other_end - other != end - text || memcmp(other, text, (size_t)(end - text)) != 0)
            count();
        if (tail)
            *tail = end;
    }
    free(other);
    return code;
}

// By this sqlx begins a transaction with a statement of ours. The single words are its own.
int __wrap_sqlite3_exec(sqlite3 *db, const char *text, sqlite3_row row, void *context, char **error) {
    char *other = text ? changed(text, false) : NULL;
    if (!other)
        return __real_sqlite3_exec(db, text, row, context, error);
    count();
    int code = __real_sqlite3_exec(db, other, row, context, error);
    free(other);
    return code;
}
