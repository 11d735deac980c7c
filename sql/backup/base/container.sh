#!/bin/sh
# pgBackRest in a container of the database's image, by the settings PRESAGE_BACKUP_… It looks for its own name in the
# server's archive command, so this script has it too.
#   presage-pgbackrest archive-push SEGMENT   the server's archive command; without a repository nothing is kept
#   presage-pgbackrest run                    takes base backups when they are due, for ever
#   presage-pgbackrest base full|incr         takes one now
#   presage-pgbackrest list                   lists them
#   presage-pgbackrest restore WHEN FOLDER    restores the cluster as it was at a moment into an empty folder
set -eu

data=${PGDATA:-/var/lib/postgresql/data}
pgbackrest=${PRESAGE_PGBACKREST:-/opt/pgbackrest/pgbackrest}
repository=${PRESAGE_BACKUP_REPOSITORY:-}
if [ -z "$repository" ]; then
    case $1 in
        archive-push) exit 0 ;;
        run) echo "off: PRESAGE_BACKUP_REPOSITORY is not set"; exec tail -f /dev/null ;;
        *) echo "PRESAGE_BACKUP_REPOSITORY is not set" >&2; exit 1 ;;
    esac
fi

# A restored cluster archives under a name of its own, never into its origin's.
stanza=presage
[ ! -e "$data/presage.stanza" ] || stanza=$(cat "$data/presage.stanza")

# By the environment: arguments are for everybody to see.
export PGBACKREST_CMD="$0" PGBACKREST_STANZA="$stanza" PGBACKREST_CONFIG=/dev/null
export PGBACKREST_PG1_PATH="$data" PGBACKREST_PG1_USER="${POSTGRES_USER:-presage}" PGBACKREST_PG1_DATABASE=postgres
export PGBACKREST_PG1_SOCKET_PATH="${PRESAGE_SOCKETS:-/var/run/postgresql}"
export PGBACKREST_LOCK_PATH=/tmp/pgbackrest PGBACKREST_LOG_LEVEL_FILE=off PGBACKREST_LOG_LEVEL_CONSOLE=warn
export PGBACKREST_COMPRESS_TYPE=zst PGBACKREST_START_FAST=y PGBACKREST_IO_TIMEOUT=10
export PGBACKREST_REPO1_RETENTION_FULL="${PRESAGE_BACKUP_FULLS_KEPT:-2}"
case $repository in
    s3://*)
        name=${repository#s3://}
        case $name in */*) path=/${name#*/} ;; *) path=/ ;; esac
        endpoint=${PRESAGE_BACKUP_S3_ENDPOINT:-s3.amazonaws.com}
        case $endpoint in *.amazonaws.com) style=host ;; *) style=path ;; esac
        export PGBACKREST_REPO1_TYPE=s3 PGBACKREST_REPO1_PATH="$path" PGBACKREST_REPO1_S3_BUCKET="${name%%/*}"
        export PGBACKREST_REPO1_S3_ENDPOINT="$endpoint" PGBACKREST_REPO1_S3_URI_STYLE="$style"
        export PGBACKREST_REPO1_S3_REGION="${PRESAGE_BACKUP_S3_REGION:-us-east-1}"
        export PGBACKREST_REPO1_S3_KEY="${PRESAGE_BACKUP_S3_KEY:-}" PGBACKREST_REPO1_S3_KEY_SECRET="${PRESAGE_BACKUP_S3_SECRET:-}"
        export PGBACKREST_REPO1_STORAGE_CA_FILE="${PRESAGE_BACKUP_S3_CA_FILE:-/etc/ssl/certs/ca-certificates.crt}"
        ;;
    *) export PGBACKREST_REPO1_PATH="$repository" ;;
esac
if [ -n "${PRESAGE_BACKUP_PASSPHRASE:-}" ]; then
    export PGBACKREST_REPO1_CIPHER_TYPE=aes-256-cbc PGBACKREST_REPO1_CIPHER_PASS="$PRESAGE_BACKUP_PASSPHRASE"
fi

base() {
    "$pgbackrest" stanza-create && "$pgbackrest" backup --type="$1"
}

# Seconds since the newest backup of the given kinds, by the time in its name; many if there is none.
age() {
    newest=$("$pgbackrest" info | awk -v kinds="$1" '$2 == "backup:" && index(kinds, $1) {name = $3} END {print name}')
    stamp=$(echo "$newest" | sed -n 's/.*\(....\)\(..\)\(..\)-\(..\)\(..\)\(..\)[A-Z]$/\1-\2-\3 \4:\5:\6/p')
    [ -n "$stamp" ] || { echo 1000000000; return; }
    echo $(($(date +%s) - $(date -d "$stamp" +%s)))
}

case $1 in
    archive-push)
        # Three attempts fit into the time that a stopping container is given.
        exec timeout 20 "$pgbackrest" archive-push "$2"
        ;;
    base) base "$2" ;;
    list) exec "$pgbackrest" info ;;
    run)
        every=$(awk "BEGIN {print int(${PRESAGE_BACKUP_EVERY_H:-24} * 3600)}")
        full_every=$(awk "BEGIN {print int(${PRESAGE_BACKUP_FULL_EVERY_DAYS:-7} * 86400)}")
        while :; do
            if [ "$(age full)" -ge "$full_every" ]; then
                base full || echo "the base backup failed; it is tried again in a quarter of an hour" >&2
            elif [ "$(age full,diff,incr)" -ge "$every" ]; then
                base incr || echo "the base backup failed; it is tried again in a quarter of an hour" >&2
            fi
            sleep 900 &
            wait $!
        done
        ;;
    restore)
        [ -d "$3" ] && [ -z "$(ls -A "$3")" ] || { echo "$3 is not an empty folder" >&2; exit 1; }
        target=$(echo "$2" | sed 's/T/ /; s/Z$/+00/')  # as pgBackRest wants it
        # The server will find its log by this script, as the folder is mounted elsewhere then.
        PGBACKREST_LOG_LEVEL_CONSOLE=info PGBACKREST_PG1_PATH="$3" \
            "$pgbackrest" restore --type=time --target="$target" --target-action=promote \
            --recovery-option="restore_command=$0 archive-get --stanza=$stanza %f \"%p\""
        echo "presage-$(date -u +%Y%m%d-%H%M%S)" > "$3/presage.stanza"
        echo "restored the files as of $2 into $3; the server replays the write-ahead log at its first start there"
        ;;
    # pgBackRest starts itself by this script, as its workers and from the server's recovery.
    *) exec "$pgbackrest" "$@" ;;
esac
