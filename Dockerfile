# docker build -t ranktilt . && docker run --rm -v "$PWD:/data" ranktilt audit --run run.trec --groups labels.tsv
FROM python:3.11-slim
COPY . /src
RUN pip install --no-cache-dir /src && rm -rf /src \
  && useradd --create-home ranktilt
USER ranktilt
WORKDIR /data
ENTRYPOINT ["ranktilt"]
CMD ["demo"]
